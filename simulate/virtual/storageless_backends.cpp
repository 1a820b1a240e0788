// SPDX-License-Identifier: Apache-2.0
#include "virtual/storageless_backends.hpp"

#include <algorithm>
#include <type_traits>

namespace sonde::simulate {
namespace {

using backends::Directory;

/// Wraps a channel of the engine: the time that an operation takes on its clock also passes for the task.
class StoragelessChannel final : public backends::Channel, private backends::NameOperations {
 public:
    StoragelessChannel(const backends::Backend& backend, SimulatedStorage& storage, const backends::ChannelSetup& setup)
        : scheduler_(storage.scheduler),
          phase_start_(storage.phase_start),
          inner_(backend.make_channel(setup)),
          is_instant_(!backend.traits.supports_virtual_time || has_no_delay(*setup.paced, setup.task)) {}

    int open(std::uint16_t file, const backends::OpenRequest& request) override {
        return pass_time([&] { return inner_->open(file, request); });
    }
    int fsync(std::uint16_t file) override {
        return pass_time([&] { return inner_->fsync(file); });
    }
    int close(std::uint16_t file) override {
        return pass_time([&] { return inner_->close(file); });
    }
    std::int64_t transfer(const backends::IoRequest& request) noexcept override {
        return pass_time([&] { return inner_->transfer(request); }, true);
    }
    bool submit(const backends::IoRequest& request) noexcept override {
        return pass_time([&] { return inner_->submit(request); });
    }
    std::size_t reap(std::span<backends::Completion> completions) noexcept override {
        return pass_time([&] { return inner_->reap(completions); }, true);
    }
    int stat(backends::Directory root, const char* path) noexcept override {
        return pass_time([&] { return inner_->stat(root, path); }, true);
    }
    int remove(backends::Directory root, const char* path) noexcept override {
        return pass_time([&] { return inner_->remove(root, path); }, true);
    }
    backends::NameOperations* name_operations() override { return this; }
    void begin_timed_part() noexcept override { inner_->begin_timed_part(); }
    std::int64_t virtual_time_ns() const noexcept override {
        return scheduler_.current_task().local_time - phase_start_;
    }
    bool advance_virtual_time(std::int64_t ns) noexcept override {
        scheduler_.wait_until(scheduler_.current_task().local_time + ns);
        return true;
    }

 private:
    Directory open_directory(Directory parent, const char* name) noexcept override {
        return inner_names().open_directory(parent, name);
    }
    void close_directory(Directory directory) noexcept override { inner_names().close_directory(directory); }
    int make_file(Directory parent, const char* name, const backends::NewFileOptions& options) noexcept override {
        return pass_time([&] { return inner_names().make_file(parent, name, options); }, true);
    }
    int make_directory(Directory parent, const char* name) noexcept override {
        return pass_time([&] { return inner_names().make_directory(parent, name); }, true);
    }
    int stat_entry(Directory parent, const char* name, const backends::StatOptions& options) noexcept override {
        return pass_time([&] { return inner_names().stat_entry(parent, name, options); }, true);
    }
    int read_attributes(Directory parent, const char* name, const backends::StatOptions& options,
                        backends::EntryAttributes& attributes) noexcept override {
        return pass_time([&] { return inner_names().read_attributes(parent, name, options, attributes); }, true);
    }
    int open_close(Directory parent, const char* name) noexcept override {
        return pass_time([&] { return inner_names().open_close(parent, name); }, true);
    }
    std::int64_t read_file(Directory parent, const char* name, std::span<std::byte> into) noexcept override {
        return pass_time([&] { return inner_names().read_file(parent, name, into); }, true);
    }
    int rename(Directory parent, const char* name, const char* to) noexcept override {
        return pass_time([&] { return inner_names().rename(parent, name, to); }, true);
    }
    int remove_file(Directory parent, const char* name) noexcept override {
        return pass_time([&] { return inner_names().remove_file(parent, name); }, true);
    }
    int remove_directory(Directory parent, const char* name) noexcept override {
        return pass_time([&] { return inner_names().remove_directory(parent, name); }, true);
    }
    std::int64_t read_entries(Directory directory, std::span<std::byte> buffer) noexcept override {
        return pass_time([&] { return inner_names().read_entries(directory, buffer); }, true);
    }
    bool next_entry(std::span<const std::byte> buffer, std::size_t& index,
                    backends::DirectoryEntry& entry) const noexcept override {
        return inner_->name_operations()->next_entry(buffer, index, entry);
    }
    int sync_file_system(Directory directory) noexcept override {
        return pass_time([&] { return inner_names().sync_file_system(directory); }, true);
    }

    backends::NameOperations& inner_names() { return *inner_->name_operations(); }

    /// Whether the paced backend delays no operation of the task.
    static bool has_no_delay(const plan::Paced& paced, int task) {
        const bool is_delayed = !paced.delays.first_task_only || task == 0;
        return paced.schedule.empty() && (!is_delayed || (paced.latency == 0 && paced.delays.transfer == 0));
    }

    /// Performs a call and lets the time that it took pass for the task. `is_operation`: the call takes `engine_cost`
    /// at least where the channel takes no time.
    template <class Action>
    std::invoke_result_t<Action> pass_time(Action action, bool is_operation = false) {
        // The inner clock stood still while the task waited for other tasks, a pause or a barrier.
        if (const std::int64_t lag = virtual_time_ns() - inner_->virtual_time_ns(); lag > 0) {
            inner_->advance_virtual_time(lag);
        }
        const std::int64_t before = inner_->virtual_time_ns();
        const auto result = action();
        const std::int64_t duration =
            std::max<std::int64_t>(inner_->virtual_time_ns() - before, is_operation && is_instant_ ? engine_cost : 0);
        if (duration > 0) {
            scheduler_.wait_until(scheduler_.current_task().local_time + duration);
        }
        return result;
    }

    TaskScheduler& scheduler_;
    Time phase_start_;
    std::unique_ptr<backends::Channel> inner_;
    bool is_instant_;
};

}  // namespace

bool reaches_storage(std::string_view backend_name) {
    return backend_name != null_backend_name && backend_name != paced_backend_name;
}

backends::Backend make_storageless_backend(const char* backend_name, SimulatedStorage& storage) {
    const backends::Backend& engine_backend = *backends::find_backend(backend_name);  // both are always compiled in
    backends::Backend backend = engine_backend;
    backend.traits.supports_virtual_time = true;
    backend.make_channel = [&engine_backend, &storage](const backends::ChannelSetup& setup) {
        return std::unique_ptr<backends::Channel>(std::make_unique<StoragelessChannel>(engine_backend, storage, setup));
    };
    return backend;
}

}  // namespace sonde::simulate
