// SPDX-License-Identifier: Apache-2.0
// MPI-IO: independent calls on a file that each task opens for itself, or collective calls on one that all open
// together. MPI itself stays behind the module's C interface.
#include "backends/backend.hpp"
#include "backends/member_votes.hpp"
#include "backends/mpi_hints.hpp"
#include "ranks/mpi_interface.hpp"
#include "ranks/mpi_loader.hpp"

#include <cerrno>
#include <stdexcept>
#include <vector>

namespace sonde::backends {
namespace {

class MpiioChannel final : public Channel {
 public:
    explicit MpiioChannel(const ChannelSetup& setup)
        : mpi_(*static_cast<const SondeMpiModule*>(setup.mpi)),
          io_settings_(*setup.io),
          votes_(mpi_, io_settings_.collective),
          files_(setup.file_count),
          hints_(io_settings_) {}
    ~MpiioChannel() override {
        // Closing a common file takes all tasks. One that is destroyed while open belongs to a run that is ending
        // badly.
        for (OpenMpiFile& file : files_) {
            if (file.handle != nullptr && !io_settings_.collective) {
                mpi_.file_close(file.handle);
            }
        }
    }

    int open(std::uint16_t index, const OpenRequest& request) override;
    int fsync(std::uint16_t index) override;
    int close(std::uint16_t index) override;
    std::int64_t transfer(const IoRequest& operation) noexcept override;
    bool agree_on_stop(bool stop) noexcept override {
        // A vote that fails means that MPI is broken: everybody who still can leaves.
        return votes_.any_yes(stop) != 0;
    }

 private:
    struct OpenMpiFile {
        SondeMpiFile* handle = nullptr;
        BlockPattern blocks;
    };

    bool is_true_on_any_task(bool here) const { return votes_.any_yes(here) > 0; }
    std::int64_t to_view_offset(const OpenMpiFile& file, const IoRequest& operation) const noexcept;

    const SondeMpiModule& mpi_;
    const plan::Io& io_settings_;
    MemberVotes votes_;
    std::vector<OpenMpiFile> files_;
    MpiHints hints_;
};

int MpiioChannel::open(std::uint16_t index, const OpenRequest& request) {
    SondeMpiFileRequest wanted{};
    wanted.path = request.path.c_str();
    // MPI wants the same mode from all, while the engine may let only one task create.
    wanted.write = static_cast<int>(is_true_on_any_task(request.write));
    wanted.read = static_cast<int>(is_true_on_any_task(request.read));
    wanted.create = static_cast<int>(is_true_on_any_task(request.create));
    wanted.truncate = static_cast<int>(is_true_on_any_task(request.truncate));
    wanted.exclusive = static_cast<int>(is_true_on_any_task(request.exclusive));
    wanted.shared = wanted.collective = static_cast<int>(io_settings_.collective);
    hints_.add_to(wanted);
    if (request.write) {
        wanted.size = io_settings_.preallocate == plan::Preallocate::truncate ? request.size : 0;
        wanted.preallocate = io_settings_.preallocate == plan::Preallocate::fallocate ? request.size : 0;
    }
    OpenMpiFile& file = files_[index];
    file.blocks = request.blocks;
    if (io_settings_.view) {
        if (file.blocks.length == 0 || file.blocks.stride < file.blocks.length) {
            return -EINVAL;
        }
        wanted.view = 1;
        wanted.first = file.blocks.first;
        wanted.block = file.blocks.length;
        wanted.stride = file.blocks.stride;
    }
    return mpi_.file_open(&wanted, &file.handle);
}

int MpiioChannel::fsync(std::uint16_t index) {
    if (const int result = votes_.begin_sync(); result != 0) {
        return result;
    }
    return mpi_.file_sync(files_[index].handle);
}

int MpiioChannel::close(std::uint16_t index) {
    if (const int result = votes_.begin_close(); result != 0) {
        return result;
    }
    SondeMpiFile* handle = files_[index].handle;
    files_[index].handle = nullptr;
    return mpi_.file_close(handle);
}

/// Start offset of the operation, in bytes of the file or of the view; -EINVAL when the view lacks those bytes.
std::int64_t MpiioChannel::to_view_offset(const OpenMpiFile& file, const IoRequest& operation) const noexcept {
    if (!io_settings_.view) {
        return static_cast<std::int64_t>(operation.offset);
    }
    const BlockPattern& blocks = file.blocks;
    if (operation.offset < blocks.first) {
        return -EINVAL;
    }
    const std::uint64_t beyond = operation.offset - blocks.first;
    const std::uint64_t inside = beyond % blocks.stride;
    if (inside + operation.length > blocks.length) {
        return -EINVAL;
    }
    return static_cast<std::int64_t>(beyond / blocks.stride * blocks.length + inside);
}

std::int64_t MpiioChannel::transfer(const IoRequest& operation) noexcept {
    const OpenMpiFile& file = files_[operation.file_index];
    const std::int64_t position = to_view_offset(file, operation);
    if (position < 0) {
        return position;
    }
    const auto offset = static_cast<std::uint64_t>(position);
    if (!operation.is_write) {
        return mpi_.file_read(file.handle, operation.buffer, operation.length, offset);
    }
    const std::int64_t moved = mpi_.file_write(file.handle, operation.buffer, operation.length, offset);
    if (io_settings_.fsync == plan::Fsync::per_op && moved >= 0) [[unlikely]] {
        if (const int result = mpi_.file_sync(file.handle); result < 0) {
            return result;
        }
    }
    return moved;
}

Availability check_availability(const std::string& /*directory*/) {
    const std::string why = ranks::explain_missing_mpi();
    return {why.empty(), why};
}

std::unique_ptr<Channel> make_channel(const ChannelSetup& setup) {
    if (setup.mpi == nullptr) {
        throw std::runtime_error(
            "the backend mpiio needs MPI, and this run was formed without it: start it by mpiexec or "
            "srun with --mpi");
    }
    if (setup.io->direct) {
        throw std::runtime_error(
            "the backend mpiio has no io.direct: give the hint direct_write or direct_read of your "
            "MPI in io.hints instead");
    }
    if (setup.io->sync_flag != plan::SyncFlag::none) {
        throw std::runtime_error("the backend mpiio has no io.sync: use io.fsync = \"per_op\"");
    }
    if (setup.io->preallocate == plan::Preallocate::unwritten) {
        throw std::runtime_error(
            "the backend mpiio cannot reserve unwritten space: use io.preallocate = \"fallocate\" or "
            "\"truncate\"");
    }
    // MPI_File_preallocate may read and write back existing data, so it must not run while other tasks write.
    if (setup.io->preallocate == plan::Preallocate::fallocate && setup.shared_file && !setup.io->collective) {
        throw std::runtime_error("the backend mpiio preallocates a shared file only with io.collective = true");
    }
    return std::make_unique<MpiioChannel>(setup);
}

}  // namespace

extern const Backend mpiio_backend;
const Backend mpiio_backend{
    .name = "mpiio",
    .summary = "MPI-IO, independent or collective, with hints and file views",
    .traits = {.supports_collective = true, .needs_mpi = true, .supports_views = true},
    .check_availability = check_availability,
    .make_channel = make_channel,
};

}  // namespace sonde::backends
