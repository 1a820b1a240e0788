// SPDX-License-Identifier: Apache-2.0
// pread and pwrite: one system call an operation, buffered or direct.
#include "backends/open_file.hpp"

#include <unistd.h>
#include <vector>

namespace sonde::backends {
namespace {

class PosixChannel final : public Channel {
 public:
    explicit PosixChannel(const ChannelSetup& setup)
        : io_settings_(*setup.io),
          descriptors_(setup.file_count, -1),
          fsync_each_(setup.io->fsync == plan::Fsync::per_op) {}
    ~PosixChannel() override {
        for (const int descriptor : descriptors_) {
            if (descriptor >= 0) {
                ::close(descriptor);
            }
        }
    }

    int open(std::uint16_t file, const OpenRequest& request) override {
        const int descriptor = open_file(io_settings_, request);
        if (descriptor < 0) {
            return descriptor;
        }
        descriptors_[file] = descriptor;
        return 0;
    }
    int fsync(std::uint16_t file) override { return sync_file(descriptors_[file]); }
    int close(std::uint16_t file) override {
        const int result = close_file(descriptors_[file]);
        descriptors_[file] = -1;
        return result;
    }

    NameOperations* name_operations() override {
        if (name_operations_ == nullptr) {
            name_operations_ = make_posix_name_operations(io_settings_.direct);
        }
        return name_operations_.get();
    }

    std::int64_t transfer(const IoRequest& operation) noexcept override {
        return operation.is_write ? transfer_once<true>(operation) : transfer_once<false>(operation);
    }
    SyscallFile syscall_file(std::uint16_t file) const noexcept override {
        return fsync_each_ ? SyscallFile() : SyscallFile(descriptors_[file]);
    }

 private:
    template <bool write>
    std::int64_t transfer_once(const IoRequest& operation) const noexcept {
        const SyscallFile file(descriptors_[operation.file_index]);
        std::int64_t moved = file.transfer_once<write>(operation.buffer, operation.length, operation.offset);
        if (moved < 0) [[unlikely]] {
            moved = file.retry_if_interrupted<write>(moved, operation.buffer, operation.length, operation.offset);
        }
        if (write && fsync_each_ && moved >= 0) {
            const int result = sync_file(descriptors_[operation.file_index]);
            return result < 0 ? result : moved;
        }
        return moved;
    }

    const plan::Io& io_settings_;
    std::vector<int> descriptors_;
    bool fsync_each_;
    std::unique_ptr<NameOperations> name_operations_;
};

}  // namespace

extern const Backend posix_backend;
const Backend posix_backend{
    .name = "posix",
    .summary = "pread and pwrite, buffered or direct",
    .traits = {.stores_data = true,
               .needs_files = true,
               .supports_direct = true,
               .supports_sync = true,
               .supports_trees = true},
    .check_availability = [](const std::string&) { return Availability{}; },
    .make_channel = [](const ChannelSetup& setup) -> std::unique_ptr<Channel> {
        return std::make_unique<PosixChannel>(setup);
    },
};

}  // namespace sonde::backends
