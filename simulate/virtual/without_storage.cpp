// SPDX-License-Identifier: Apache-2.0
#include "virtual/without_storage.hpp"

#include "virtual/channel.hpp"

#include <algorithm>
#include <type_traits>

namespace sonde::simulate {
namespace {

using backends::Directory;

const backends::Backend& engines_own(std::string_view name) {
    return *backends::find(name);  // one of those below, which are always compiled in
}

/// A channel of the engine that keeps its own time, or none. What an operation took there passes for the player.
class AlongsideChannel final : public backends::Channel, private backends::Names {
 public:
    AlongsideChannel(const backends::Backend& backend, const backends::ChannelSetup& setup)
        : conductor_(stage_conductor()),
          start_(stage_start()),
          inner_(backend.make(setup)),
          free_(!backend.traits.virtual_time || takes_no_time(*setup.paced, setup.task)) {}

    int open(std::uint16_t file, const backends::OpenRequest& request) override {
        return passing([&] { return inner_->open(file, request); });
    }
    int fsync(std::uint16_t file) override {
        return passing([&] { return inner_->fsync(file); });
    }
    int close(std::uint16_t file) override {
        return passing([&] { return inner_->close(file); });
    }
    std::int64_t transfer(const backends::Operation& asked) noexcept override {
        return passing([&] { return inner_->transfer(asked); }, true);
    }
    bool submit(const backends::Operation& asked) noexcept override {
        return passing([&] { return inner_->submit(asked); });
    }
    std::size_t reap(std::span<backends::Completion> done) noexcept override {
        return passing([&] { return inner_->reap(done); }, true);
    }
    int stat(const char* path) noexcept override {
        return passing([&] { return inner_->stat(path); }, true);
    }
    int remove(const char* path) noexcept override {
        return passing([&] { return inner_->remove(path); }, true);
    }
    backends::Names* names() override { return this; }
    void begin() noexcept override { inner_->begin(); }
    std::int64_t now() const noexcept override { return conductor_.current().local - start_; }
    bool idle(std::int64_t ns) noexcept override {
        conductor_.idle_until(conductor_.current().local + ns);
        return true;
    }

 private:
    Directory enter(Directory at, const char* name) noexcept override { return theirs().enter(at, name); }
    void leave(Directory directory) noexcept override { theirs().leave(directory); }
    int make_file(Directory at, const char* name, const backends::NewFile& how) noexcept override {
        return passing([&] { return theirs().make_file(at, name, how); }, true);
    }
    int make_directory(Directory at, const char* name) noexcept override {
        return passing([&] { return theirs().make_directory(at, name); }, true);
    }
    int look(Directory at, const char* name, const backends::Look& how) noexcept override {
        return passing([&] { return theirs().look(at, name, how); }, true);
    }
    int examine(Directory at, const char* name, const backends::Look& how, backends::Facts& facts) noexcept override {
        return passing([&] { return theirs().examine(at, name, how, facts); }, true);
    }
    int open_close(Directory at, const char* name) noexcept override {
        return passing([&] { return theirs().open_close(at, name); }, true);
    }
    std::int64_t read(Directory at, const char* name, std::span<std::byte> into) noexcept override {
        return passing([&] { return theirs().read(at, name, into); }, true);
    }
    int rename(Directory at, const char* name, const char* to) noexcept override {
        return passing([&] { return theirs().rename(at, name, to); }, true);
    }
    int remove_file(Directory at, const char* name) noexcept override {
        return passing([&] { return theirs().remove_file(at, name); }, true);
    }
    int remove_directory(Directory at, const char* name) noexcept override {
        return passing([&] { return theirs().remove_directory(at, name); }, true);
    }
    std::int64_t list(Directory directory, std::span<std::byte> buffer) noexcept override {
        return passing([&] { return theirs().list(directory, buffer); }, true);
    }
    bool next(std::span<const std::byte> listed, std::size_t& place, backends::Entry& entry) const noexcept override {
        return inner_->names()->next(listed, place, entry);
    }
    int sync(Directory directory) noexcept override {
        return passing([&] { return theirs().sync(directory); }, true);
    }

    backends::Names& theirs() { return *inner_->names(); }

    /// Neither a rate nor a latency: only the engine is left to take time.
    static bool takes_no_time(const plan::Paced& paced, int task) {
        const bool slow = !paced.delays.first_task_only || task == 0;
        return paced.schedule.empty() && (!slow || (paced.latency == 0 && paced.delays.transfer == 0));
    }

    /// Performs a call at the player's time and lets that pass which it took. `moves`: it takes the engine's time at
    /// least, where the storage takes none.
    template <class Call>
    std::invoke_result_t<Call> passing(Call call, bool moves = false) {
        // Others, a pause or a barrier may have held the player since its last call.
        if (const std::int64_t behind = now() - inner_->now(); behind > 0) {
            inner_->idle(behind);
        }
        const std::int64_t before = inner_->now();
        const auto result = call();
        const std::int64_t took = std::max<std::int64_t>(inner_->now() - before, moves && free_ ? engine_cost : 0);
        if (took > 0) {
            conductor_.idle_until(conductor_.current().local + took);
        }
        return result;
    }

    Conductor& conductor_;
    Time start_;
    std::unique_ptr<backends::Channel> inner_;
    bool free_;
};

/// The engine's backend with channels that take their turns.
template <const char* const& name>
const backends::Backend& alongside() {
    static const backends::Backend backend = [] {
        const backends::Backend& own = engines_own(name);
        backends::Backend made = own;
        made.traits.virtual_time = true;
        made.make = [](const backends::ChannelSetup& setup) -> std::unique_ptr<backends::Channel> {
            return std::make_unique<AlongsideChannel>(engines_own(name), setup);
        };
        return made;
    }();
    return backend;
}

constexpr const char* null_name = "null";
constexpr const char* paced_name = "paced";

}  // namespace

const backends::Backend* without_storage(std::string_view name) {
    return name == null_name ? &alongside<null_name>() : name == paced_name ? &alongside<paced_name>() : nullptr;
}

}  // namespace sonde::simulate
