// SPDX-License-Identifier: Apache-2.0
// The barest loop over ncmpi_put_vara and ncmpi_get_vara, as a program writes it that uses PnetCDF: one variable of
// bytes with a record whose rows are the transfers, as IOR lays it out, no clock and no meter inside a pass.
// bench/pnetcdf.py compiles and starts it, with the arguments and the output of hdf5_loop.cpp.
#include "mpi_loop.hpp"

#include <pnetcdf.h>

namespace {

using sonde::bench::LoopError;
using sonde::bench::Task;

void check(int code, const char* call) {
    if (code != NC_NOERR) {
        throw LoopError(std::string(call) + " failed: " + ncmpi_strerror(code));
    }
}

class Dataset {
 public:
    explicit Dataset(const Task& task)
        : transfer_(task.transfer),
          collective_(task.collective),
          put_(task.collective ? ncmpi_put_vara_schar_all : ncmpi_put_vara_schar),
          get_(task.collective ? ncmpi_get_vara_schar_all : ncmpi_get_vara_schar) {
        check(ncmpi_create(MPI_COMM_SELF, task.file, NC_64BIT_OFFSET | NC_CLOBBER, MPI_INFO_NULL, &file_),
              "ncmpi_create");
        int dimensions[3];
        check(ncmpi_def_dim(file_, "segments_times_np", NC_UNLIMITED, &dimensions[0]), "ncmpi_def_dim");
        check(
            ncmpi_def_dim(file_, "number_of_transfers", static_cast<MPI_Offset>(task.size / transfer_), &dimensions[1]),
            "ncmpi_def_dim");
        check(ncmpi_def_dim(file_, "transfer_size", static_cast<MPI_Offset>(transfer_), &dimensions[2]),
              "ncmpi_def_dim");
        check(ncmpi_def_var(file_, "data_var", NC_BYTE, 3, dimensions, &variable_), "ncmpi_def_var");
        check(ncmpi_enddef(file_), "ncmpi_enddef");
        if (!collective_) {
            check(ncmpi_begin_indep_data(file_), "ncmpi_begin_indep_data");
        }
    }

    void write(std::uint64_t offset, const std::byte* from) {
        const MPI_Offset start[] = {0, static_cast<MPI_Offset>(offset / transfer_), 0};
        const MPI_Offset count[] = {1, 1, static_cast<MPI_Offset>(transfer_)};
        check(put_(file_, variable_, start, count, reinterpret_cast<const signed char*>(from)), "ncmpi_put_vara");
    }

    void read(std::uint64_t offset, std::byte* into) {
        const MPI_Offset start[] = {0, static_cast<MPI_Offset>(offset / transfer_), 0};
        const MPI_Offset count[] = {1, 1, static_cast<MPI_Offset>(transfer_)};
        check(get_(file_, variable_, start, count, reinterpret_cast<signed char*>(into)), "ncmpi_get_vara");
    }

    void close() {
        if (!collective_) {
            check(ncmpi_end_indep_data(file_), "ncmpi_end_indep_data");
        }
        check(ncmpi_close(file_), "ncmpi_close");
    }

 private:
    std::uint64_t transfer_;  ///< bytes
    bool collective_;
    decltype(&ncmpi_put_vara_schar) put_;
    decltype(&ncmpi_get_vara_schar) get_;
    int file_ = -1, variable_ = -1;
};

}  // namespace

int main(int count, char** arguments) {
    return sonde::bench::run_program<Dataset>("pnetcdf_loop", count, arguments);
}
