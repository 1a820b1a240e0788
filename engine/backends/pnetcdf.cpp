// SPDX-License-Identifier: Apache-2.0
// PnetCDF through MPI-IO, in the files of IOR: one variable of bytes, data_var, with a record for each block of the
// file, whose rows are the transfers of the block. Data transfers are independent or collective; opening, flushing and
// closing a common file takes all its tasks in any case.
#include "backends/backend.hpp"
#include "backends/member_votes.hpp"
#include "backends/mpi_hints.hpp"
#include "backends/pnetcdf_library.hpp"

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sonde::backends {
namespace {

constexpr char variable_name[] = "data_var";
constexpr int dimensions = 3;  // record, row, byte

int find_errno(int code) {
    const std::pair<int, int> codes[] = {
        {nc_file_exists, EEXIST}, {nc_no_netcdf, EINVAL}, {nc_no_access, EACCES},
        {nc_no_file, ENOENT},     {nc_no_space, ENOSPC},  {nc_over_quota, EDQUOT},
    };
    for (const auto& [nc, number] : codes) {
        if (code == nc) {
            return number;
        }
    }
    return EIO;
}

class PnetcdfChannel final : public Channel {
 public:
    explicit PnetcdfChannel(const ChannelSetup& setup)
        : mpi_(*static_cast<const SondeMpiModule*>(setup.mpi)),
          nc_(load_pnetcdf()),
          io_settings_(*setup.io),
          votes_(mpi_, setup.shared_file),
          decides_(!setup.shared_file || setup.task == 0),
          row_bytes_(setup.max_length),
          files_(setup.file_count),
          hints_(io_settings_) {}
    ~PnetcdfChannel() override {
        // Closing a common file takes all tasks. One that is destroyed while open belongs to a run that ends badly.
        for (const OpenDataset& file : files_) {
            if (file.id >= 0 && !votes_.is_common()) {
                nc_.close(file.id);
            }
        }
    }

    int open(std::uint16_t index, const OpenRequest& request) override;
    int fsync(std::uint16_t index) override;
    int close(std::uint16_t index) override;
    std::int64_t transfer(const IoRequest& operation) noexcept override;
    bool agree_on_stop(bool stop) noexcept override {
        return io_settings_.collective ? votes_.any_yes(stop) != 0 : stop;
    }
    const char* last_error_text() const noexcept override { return explanation_.c_str(); }

 private:
    struct OpenDataset {
        int id = -1, variable = -1;
        std::uint64_t block = 0;  ///< bytes of a record
        std::string path;
    };

    int fail(int code) noexcept;
    int fail(int code, std::string explanation) noexcept;
    int open_file(OpenDataset& file, const OpenRequest& request, bool must_create);
    int create_variable(OpenDataset& file);
    int open_variable(OpenDataset& file, const OpenRequest& request);

    const SondeMpiModule& mpi_;
    const PnetcdfFunctions& nc_;
    const plan::Io& io_settings_;
    MemberVotes votes_;
    bool decides_;  ///< whether this task looks at the file for all that open it
    std::uint64_t row_bytes_;
    std::vector<OpenDataset> files_;
    MpiHints hints_;
    std::string explanation_;
};

/// -errno for a code of PnetCDF.
int PnetcdfChannel::fail(int code) noexcept {
    return fail(find_errno(code), std::string("PnetCDF: ") + nc_.strerror(code));
}

int PnetcdfChannel::fail(int code, std::string explanation) noexcept {
    explanation_ = std::move(explanation);
    return -code;
}

int PnetcdfChannel::open_file(OpenDataset& file, const OpenRequest& request, bool must_create) {
    SondeMpiFileRequest group{};
    group.path = request.path.c_str();
    group.shared = static_cast<int>(votes_.is_common());
    hints_.add_to(group);
    const int mode = must_create ? nc_offsets_64_bit | (request.exclusive ? nc_exclusive : nc_truncate)
                                 : (request.write ? nc_read_write : nc_read_only);
    int code = 0;
    if (mpi_.open_dataset(must_create ? nc_.create : nc_.open, mode, &file.id, &group, &code) != 0) {
        return fail(EOPNOTSUPP, mpi_.last_error_message());
    }
    if (code != 0) {
        file.id = -1;
    }
    if (code == nc_no_netcdf) {
        return fail(EINVAL, request.path +
                                " is not a netCDF file: write it first, or name the file that `-a NCMPI` or "
                                "backend \"pnetcdf\" made");
    }
    if (code != 0) {
        return fail(code);
    }
    return must_create ? create_variable(file) : open_variable(file, request);
}

int PnetcdfChannel::create_variable(OpenDataset& file) {
    const std::pair<const char*, NcSize> lengths[dimensions] = {
        {"segments_times_np", nc_unlimited},
        {"number_of_transfers", static_cast<NcSize>(file.block / row_bytes_)},
        {"transfer_size", static_cast<NcSize>(row_bytes_)},
    };
    std::array<int, dimensions> ids{};
    int code = 0;
    for (std::size_t i = 0; i < ids.size() && code == 0; ++i) {
        code = nc_.def_dim(file.id, lengths[i].first, lengths[i].second, &ids[i]);
    }
    if (code == 0) {
        code = nc_.def_var(file.id, variable_name, nc_byte, dimensions, ids.data(), &file.variable);
    }
    if (code == 0) {
        code = nc_.enddef(file.id);
    }
    return code == 0 ? 0 : fail(code);
}

/// Checks that the variable is one that a phase of the same geometry has written, and holds all that will be read.
int PnetcdfChannel::open_variable(OpenDataset& file, const OpenRequest& request) {
    int type = 0, count = 0;
    if (nc_.inq_varid(file.id, variable_name, &file.variable) != 0 ||
        nc_.inq_vartype(file.id, file.variable, &type) != 0 || type != nc_byte ||
        nc_.inq_varndims(file.id, file.variable, &count) != 0 || count != dimensions) {
        return fail(ENODATA, request.path + " has no variable " + variable_name +
                                 " of bytes with three dimensions: it was written by another program");
    }
    std::array<int, dimensions> ids{};
    std::array<NcSize, dimensions> lengths{};
    int code = nc_.inq_vardimid(file.id, file.variable, ids.data());
    for (std::size_t i = 0; i < ids.size() && code == 0; ++i) {
        code = nc_.inq_dimlen(file.id, ids[i], &lengths[i]);
    }
    if (code != 0) {
        return fail(code);
    }
    const auto rows = static_cast<NcSize>(file.block / row_bytes_);
    if (lengths[1] != rows || lengths[2] != static_cast<NcSize>(row_bytes_)) {
        return fail(EINVAL, request.path + " holds records of " + std::to_string(lengths[1]) + " transfers of " +
                                std::to_string(lengths[2]) + " B, but a block of this phase is " +
                                std::to_string(rows) + " transfers of " + std::to_string(row_bytes_) +
                                " B: use the block and the transfer that wrote it");
    }
    const auto needed = static_cast<NcSize>(request.size / file.block);
    if (!request.write && lengths[0] < needed) {
        return fail(ENODATA, request.path + " holds " + std::to_string(lengths[0]) + " records, but this phase reads " +
                                 std::to_string(needed) + ": it was written with fewer segments or tasks");
    }
    return 0;
}

int PnetcdfChannel::open(std::uint16_t index, const OpenRequest& request) {
    OpenDataset& file = files_[index];
    explanation_.clear();
    file.block = request.blocks.length;
    file.path = request.path;
    const int create_vote = votes_.any_yes(decides_ && must_create_file(request));
    if (create_vote < 0) {
        return create_vote;
    }
    int result = open_file(file, request, create_vote != 0);
    // All tasks have the file open, or none.
    int failed = votes_.any_yes(result < 0);
    if (failed == 0 && !io_settings_.collective) {
        const int code = nc_.begin_indep_data(file.id);
        result = code == 0 ? 0 : fail(code);
        failed = votes_.any_yes(result < 0);
    }
    if (failed != 0 && file.id >= 0) {
        nc_.close(file.id);
        file.id = -1;
    }
    if (failed != 0 && result == 0) {
        result = fail(EIO, "another task could not open the file");
    }
    return result;
}

int PnetcdfChannel::fsync(std::uint16_t index) {
    if (const int result = votes_.begin_sync(); result != 0) {
        return result;
    }
    const int code = nc_.sync(files_[index].id);
    return code == 0 ? 0 : fail(code);
}

int PnetcdfChannel::close(std::uint16_t index) {
    if (const int result = votes_.begin_close(); result != 0) {
        return result;
    }
    OpenDataset& file = files_[index];
    const int ended = io_settings_.collective ? 0 : nc_.end_indep_data(file.id);
    const int closed = nc_.close(file.id);
    file = {};
    return ended != 0 ? fail(ended) : closed != 0 ? fail(closed) : 0;
}

std::int64_t PnetcdfChannel::transfer(const IoRequest& operation) noexcept {
    const OpenDataset& file = files_[operation.file_index];
    const std::array<NcSize, dimensions> start{static_cast<NcSize>(operation.offset / file.block),
                                               static_cast<NcSize>(operation.offset % file.block / row_bytes_), 0};
    const std::array<NcSize, dimensions> count{1, 1, static_cast<NcSize>(operation.length)};
    int code = 0;
    if (operation.is_write) {
        const auto put = io_settings_.collective ? nc_.put_vara_schar_all : nc_.put_vara_schar;
        code = put(file.id, file.variable, start.data(), count.data(),
                   reinterpret_cast<const signed char*>(operation.buffer));
    } else {
        const auto get = io_settings_.collective ? nc_.get_vara_schar_all : nc_.get_vara_schar;
        code =
            get(file.id, file.variable, start.data(), count.data(), reinterpret_cast<signed char*>(operation.buffer));
    }
    if (code == 0) [[likely]] {
        return static_cast<std::int64_t>(operation.length);
    }
    const int result = fail(code);
    return is_out_of_space(result, operation, file.path) ? fail(ENOSPC, explanation_ + ": the file system is full")
                                                         : result;
}

Availability check_availability(const std::string& /*directory*/) {
    const std::string why = explain_missing_pnetcdf();
    return {why.empty(), why};
}

std::unique_ptr<Channel> make_channel(const ChannelSetup& setup) {
    if (setup.mpi == nullptr) {
        throw std::runtime_error(
            "the backend pnetcdf needs MPI, and this run was formed without it: start it by mpiexec or srun with "
            "--mpi");
    }
    return std::make_unique<PnetcdfChannel>(setup);
}

}  // namespace

extern const Backend pnetcdf_backend;
const Backend pnetcdf_backend{
    .name = "pnetcdf",
    .summary = "a variable of a netCDF file as IOR writes it, through PnetCDF, independent or collective",
    .traits = {.supports_collective = true,
               .needs_mpi = true,
               .dataset_element_bytes = 1,
               .has_transfer_dimension = true,
               // PnetCDF 1.12 over ompio of Open MPI 4.1 returns success for a write that gets no space.
               .hides_write_errors = is_ompio_used},
    .check_availability = check_availability,
    .make_channel = make_channel,
};

}  // namespace sonde::backends
