// SPDX-License-Identifier: Apache-2.0
// The barest loop over H5Dwrite and H5Dread, as a program writes it that uses HDF5: one dataset of 64-bit integers, a
// hyperslab of it in each call, no clock and no meter inside a pass. bench/hdf5.py compiles and starts it.
// hdf5_loop FILE TRANSFER SIZE DATA SECONDS COLLECTIVE: fills the file, then rewrites and reads it in passes for so
// many seconds each; prints {"rewrite": {"rate": operations per second, "cpu_ns": of an operation}, "read": …}. DATA:
// bytes of different data, a power of two.
#include "mpi_loop.hpp"

#include <hdf5.h>

namespace {

using sonde::bench::LoopError;
using sonde::bench::Task;

template <class Result>
Result check(Result result, const char* call) {
    if (result < 0) {
        throw LoopError(std::string(call) + " failed");
    }
    return result;
}

class Dataset {
 public:
    explicit Dataset(const Task& task) : count_(task.transfer / sizeof(long long)) {
        const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
        check(H5Pset_fapl_mpio(access, MPI_COMM_SELF, MPI_INFO_NULL), "H5Pset_fapl_mpio");
        file_ = check(H5Fcreate(task.file, H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
        const hsize_t elements = task.size / sizeof(long long);
        file_space_ = H5Screate_simple(1, &elements, nullptr);
        memory_space_ = H5Screate_simple(1, &count_, nullptr);
        dataset_ = check(H5Dcreate2(file_, "Dataset-0000.0000", H5T_NATIVE_LLONG, file_space_, H5P_DEFAULT, H5P_DEFAULT,
                                    H5P_DEFAULT),
                         "H5Dcreate2");
        transfer_list_ = H5Pcreate(H5P_DATASET_XFER);
        if (task.collective) {
            check(H5Pset_dxpl_mpio(transfer_list_, H5FD_MPIO_COLLECTIVE), "H5Pset_dxpl_mpio");
        }
        H5Pclose(access);
    }

    void write(std::uint64_t offset, const std::byte* from) {
        select(offset);
        check(H5Dwrite(dataset_, H5T_NATIVE_LLONG, memory_space_, file_space_, transfer_list_, from), "H5Dwrite");
    }

    void read(std::uint64_t offset, std::byte* into) {
        select(offset);
        check(H5Dread(dataset_, H5T_NATIVE_LLONG, memory_space_, file_space_, transfer_list_, into), "H5Dread");
    }

    void close() {
        H5Pclose(transfer_list_);
        H5Dclose(dataset_);
        H5Sclose(memory_space_);
        H5Sclose(file_space_);
        check(H5Fclose(file_), "H5Fclose");
    }

 private:
    void select(std::uint64_t offset) {
        const hsize_t start = offset / sizeof(long long), single = 1;
        check(H5Sselect_hyperslab(file_space_, H5S_SELECT_SET, &start, nullptr, &single, &count_),
              "H5Sselect_hyperslab");
    }

    hsize_t count_;  ///< elements of a transfer
    hid_t file_, dataset_, file_space_, memory_space_, transfer_list_;
};

}  // namespace

int main(int count, char** arguments) {
    return sonde::bench::run_program<Dataset>("hdf5_loop", count, arguments);
}
