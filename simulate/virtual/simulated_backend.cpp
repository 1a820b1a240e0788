// SPDX-License-Identifier: Apache-2.0
#include "virtual/simulated_backend.hpp"

#include "virtual/simulated_names.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace sonde::simulate {
namespace {

class SimulatedChannel final : public backends::Channel {
 public:
    SimulatedChannel(SimulatedStorage& storage, const backends::ChannelSetup& setup)
        : storage_(storage),
          scheduler_(storage.scheduler),
          io_settings_(*setup.io),
          is_durable_(io_settings_.sync_flag != plan::SyncFlag::none || io_settings_.fsync == plan::Fsync::per_op),
          files_(setup.file_count),
          slot_bytes_(static_cast<std::size_t>(std::max(io_settings_.queue_depth, 1))) {}

    int open(std::uint16_t file, const backends::OpenRequest& request) override {
        Machine& machine = scheduler_.machine();
        const bool exists = machine.exists(request.path);
        if (!exists && !request.create) {
            return -ENOENT;
        }
        if (exists && request.exclusive) {
            return -EEXIST;
        }
        files_[file] = machine.get_file(request.path);
        if (exists && request.truncate) {
            machine.resize_file(files_[file], 0);
        }
        if (request.write && io_settings_.preallocate != plan::Preallocate::none) {
            machine.allocate_blocks(files_[file], request.size);
        }
        scheduler_.call(make_operation(exists ? ModelCallKind::open : ModelCallKind::create, files_[file]));
        return 0;
    }
    int fsync(std::uint16_t file) override {
        scheduler_.call(make_operation(ModelCallKind::fsync, files_[file]));
        return 0;
    }
    int close(std::uint16_t file) override {
        scheduler_.call(make_operation(ModelCallKind::close, files_[file]));
        return 0;
    }

    std::int64_t transfer(const backends::IoRequest& request) noexcept override {
        const std::int64_t bytes = count_bytes(request);
        const int error = scheduler_.call(make_transfer(request));
        return error == 0 ? bytes : -error;
    }
    bool submit(const backends::IoRequest& request) noexcept override {
        slot_bytes_[request.slot] = count_bytes(request);
        scheduler_.submit(make_transfer(request), request.slot);
        return true;
    }
    std::size_t reap(std::span<backends::Completion> completions) noexcept override {
        const ScheduledTask& task = scheduler_.current_task();
        if (task.submitted_count == 0) {
            return 0;
        }
        std::size_t count = 0;
        do {
            const CompletedSlot done = scheduler_.reap();
            completions[count++] = {done.slot, done.error == 0 ? slot_bytes_[done.slot] : -done.error};
        } while (count < completions.size() && !task.completed_slots.empty());
        return count;
    }

    int stat(backends::Directory /*root*/, const char* path) noexcept override {
        if (!scheduler_.machine().exists(path)) {
            return -ENOENT;
        }
        scheduler_.call(make_operation(ModelCallKind::stat, scheduler_.machine().get_file(path)));
        return 0;
    }
    int remove(backends::Directory /*root*/, const char* path) noexcept override {
        if (!scheduler_.machine().exists(path)) {
            return -ENOENT;
        }
        scheduler_.call(make_operation(ModelCallKind::remove, scheduler_.machine().get_file(path)));
        scheduler_.machine().remove_file(path);
        return 0;
    }
    backends::NameOperations* name_operations() override {
        if (!name_operations_) {
            name_operations_ =
                std::make_unique<SimulatedNameOperations>(scheduler_, storage_.directories, io_settings_.direct);
        }
        return name_operations_.get();
    }

    std::int64_t virtual_time_ns() const noexcept override {
        return scheduler_.current_task().local_time - storage_.phase_start;
    }
    bool advance_virtual_time(std::int64_t ns) noexcept override {
        scheduler_.wait_until(scheduler_.current_task().local_time + ns);
        return true;
    }

 private:
    static ModelOperation make_operation(ModelCallKind kind, FileId file) {
        ModelOperation operation;
        operation.kind = kind;
        operation.file = file;
        return operation;
    }
    ModelOperation make_transfer(const backends::IoRequest& request) const {
        ModelOperation operation =
            make_operation(request.is_write ? ModelCallKind::write : ModelCallKind::read, files_[request.file_index]);
        operation.direct = io_settings_.direct;
        operation.sync = is_durable_ && request.is_write;
        operation.offset = request.offset;
        operation.length = request.length;
        return operation;
    }
    /// Bytes that a call transfers: a read ends with the file.
    std::int64_t count_bytes(const backends::IoRequest& request) const {
        if (request.is_write) {
            return request.length;
        }
        const std::uint64_t size = scheduler_.machine().file_size(files_[request.file_index]);
        return static_cast<std::int64_t>(
            request.offset >= size ? 0 : std::min<std::uint64_t>(request.length, size - request.offset));
    }

    SimulatedStorage& storage_;
    TaskScheduler& scheduler_;
    const plan::Io& io_settings_;
    bool is_durable_;
    std::vector<FileId> files_;
    std::vector<std::int64_t> slot_bytes_;  ///< bytes of the operation submitted in each slot
    std::unique_ptr<SimulatedNameOperations> name_operations_;
};

}  // namespace

backends::Backend make_simulated_backend(SimulatedStorage& storage) {
    return {
        .name = "simulated",
        .summary = "a described machine in virtual time",
        .traits = {.supports_queue = true,
                   .supports_direct = true,
                   .supports_sync = true,
                   .supports_trees = true,
                   .supports_collective = true,
                   .supports_virtual_time = true},
        .check_availability = [](const std::string&) { return backends::Availability{}; },
        .make_channel = [&storage](const backends::ChannelSetup& setup) -> std::unique_ptr<backends::Channel> {
            return std::make_unique<SimulatedChannel>(storage, setup);
        },
    };
}

}  // namespace sonde::simulate
