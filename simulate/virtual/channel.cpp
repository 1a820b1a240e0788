// SPDX-License-Identifier: Apache-2.0
#include "virtual/channel.hpp"

#include "virtual/names.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace sonde::simulate {
namespace {

/// Backends are made by plain functions, which have no other way to know.
struct Stage {
    Conductor* conductor = nullptr;
    Directories* directories = nullptr;
    Time start = 0;
};
Stage& stage() {
    static Stage only;
    return only;
}

class SimulatedChannel final : public backends::Channel {
 public:
    explicit SimulatedChannel(const backends::ChannelSetup& setup)
        : conductor_(stage_conductor()),
          io_(*setup.io),
          durable_(io_.sync != plan::Sync::none || io_.fsync == plan::Fsync::per_op),
          files_(setup.files),
          slots_(static_cast<std::size_t>(std::max(io_.queue_depth, 1))) {}

    int open(std::uint16_t file, const backends::OpenRequest& request) override {
        Machine& machine = conductor_.machine();
        const bool there = machine.exists(request.path);
        if (!there && !request.create) {
            return -ENOENT;
        }
        if (there && request.exclusive) {
            return -EEXIST;
        }
        files_[file] = machine.file(request.path);
        if (there && request.truncate) {
            machine.resize(files_[file], 0);
        }
        if (request.write && io_.preallocate != plan::Preallocate::none) {
            machine.allocate(files_[file], request.size);
        }
        conductor_.call(on(there ? Call::open : Call::create, files_[file]));
        return 0;
    }
    int fsync(std::uint16_t file) override {
        conductor_.call(on(Call::fsync, files_[file]));
        return 0;
    }
    int close(std::uint16_t file) override {
        conductor_.call(on(Call::close, files_[file]));
        return 0;
    }

    std::int64_t transfer(const backends::Operation& asked) noexcept override {
        const std::int64_t moved = bytes_of(asked);
        conductor_.call(move(asked));
        return moved;
    }
    bool submit(const backends::Operation& asked) noexcept override {
        slots_[asked.slot] = bytes_of(asked);
        conductor_.submit(move(asked), asked.slot);
        return true;
    }
    std::size_t reap(std::span<backends::Completion> done) noexcept override {
        const Player& player = conductor_.current();
        if (player.submitted == 0) {
            return 0;
        }
        std::size_t count = 0;
        do {
            const std::uint32_t slot = conductor_.reap();
            done[count++] = {slot, slots_[slot]};
        } while (count < done.size() && !player.ready.empty());
        return count;
    }

    int stat(const char* path) noexcept override {
        if (!conductor_.machine().exists(path)) {
            return -ENOENT;
        }
        conductor_.call(on(Call::stat, conductor_.machine().file(path)));
        return 0;
    }
    int remove(const char* path) noexcept override {
        if (!conductor_.machine().exists(path)) {
            return -ENOENT;
        }
        conductor_.call(on(Call::remove, conductor_.machine().file(path)));
        conductor_.machine().forget(path);
        return 0;
    }
    backends::Names* names() override {
        if (!names_) {
            names_ = std::make_unique<SimulatedNames>(conductor_, *stage().directories, io_.direct);
        }
        return names_.get();
    }

    std::int64_t now() const noexcept override { return conductor_.current().local - stage().start; }
    bool idle(std::int64_t ns) noexcept override {
        conductor_.idle_until(conductor_.current().local + ns);  // others go on meanwhile
        return true;
    }

 private:
    static Operation on(Call call, FileId file) {
        Operation operation;
        operation.call = call;
        operation.file = file;
        return operation;
    }
    Operation move(const backends::Operation& asked) const {
        Operation operation = on(asked.write ? Call::write : Call::read, files_[asked.file]);
        operation.direct = io_.direct;
        operation.sync = durable_ && asked.write;
        operation.offset = asked.offset;
        operation.length = asked.length;
        return operation;
    }
    /// What a call moves: a read ends with the file.
    std::int64_t bytes_of(const backends::Operation& asked) const {
        if (asked.write) {
            return asked.length;
        }
        const std::uint64_t size = conductor_.machine().size(files_[asked.file]);
        return static_cast<std::int64_t>(
            asked.offset >= size ? 0 : std::min<std::uint64_t>(asked.length, size - asked.offset));
    }

    Conductor& conductor_;
    const plan::Io& io_;
    bool durable_;
    std::vector<FileId> files_;
    std::vector<std::int64_t> slots_;  ///< bytes of what was submitted
    std::unique_ptr<SimulatedNames> names_;
};

}  // namespace

const backends::Backend& simulated_backend() {
    static const backends::Backend backend{
        .name = "simulated",
        .summary = "a described machine in virtual time",
        .traits =
            {.queue = true, .direct = true, .sync = true, .names = true, .collective = true, .virtual_time = true},
        .usable = [](const std::string&) { return backends::Answer{}; },
        .make = [](const backends::ChannelSetup& setup) -> std::unique_ptr<backends::Channel> {
            return std::make_unique<SimulatedChannel>(setup);
        },
    };
    return backend;
}

void set_stage(Conductor* conductor, Directories* directories, Time phase_start) {
    stage() = {conductor, directories, phase_start};
    directories->listed.reset();
}

Conductor& stage_conductor() {
    return *stage().conductor;  // set before any channel is made. NOLINT(clang-analyzer-*)
}

Time stage_start() {
    return stage().start;
}

}  // namespace sonde::simulate
