// SPDX-License-Identifier: Apache-2.0
// Goes through the mpiio backend as the tasks of a run would, one process a task, below the folder given as the only
// argument. Started by launchers in test_mpiio.py; prints "ok" from the root, or what was wrong from whoever saw it.
#include "backends/backend.hpp"
#include "ranks/team_factory.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace sonde;
using backends::IoRequest;

constexpr std::uint32_t transfer = 1000;
constexpr std::uint64_t block = 3 * transfer;
constexpr std::uint64_t gap = 500;
constexpr std::uint64_t segments = 4;

/// The byte that belongs at `offset` of a file.
std::byte content(std::uint64_t offset) {
    return static_cast<std::byte>((offset * 2654435761U) >> 24U);
}

struct UnmetExpectation : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void expect(bool truth, const std::string& expectation) {
    if (!truth) {
        throw UnmetExpectation(expectation);
    }
}

/// One task and its channel.
class TaskFile {
 public:
    TaskFile(ranks::Team& team, const plan::Io& io, bool shared) : team_(team), io_(io), shared_(shared) {
        backends::ChannelSetup setup;
        setup.io = &io_;
        setup.task = team.location().process;
        setup.tasks = team.location().processes;
        setup.max_length = transfer;
        setup.mpi = team.mpi_module();
        setup.shared_file = shared;
        channel_ = backends::find_backend("mpiio")->make_channel(setup);
    }
    backends::Channel* operator->() { return channel_.get(); }

    std::uint64_t tasks() const { return shared_ ? static_cast<std::uint64_t>(team_.location().processes) : 1; }
    std::uint64_t index() const { return shared_ ? static_cast<std::uint64_t>(team_.location().process) : 0; }
    std::uint64_t offset(std::uint64_t segment, std::uint64_t slot) const {
        return (segment * tasks() + index()) * (block + gap) + slot * transfer;
    }

    int open(const std::string& path, bool write, bool create) {
        backends::OpenRequest request;
        request.path = path;
        request.write = write;
        request.read = true;
        request.create = create;
        request.truncate = create && !shared_;
        request.size = segments * tasks() * (block + gap) - gap;
        request.blocks = {index() * (block + gap), block, tasks() * (block + gap)};
        return channel_->open(0, request);
    }

    std::int64_t transfer_and_count(bool write, std::uint64_t position, std::uint32_t length = transfer) {
        buffer_.assign(length, std::byte{0});
        if (write) {
            for (std::uint32_t i = 0; i < length; ++i) {
                buffer_[i] = content(position + i);
            }
        }
        IoRequest operation;
        operation.offset = position;
        operation.buffer = buffer_.data();
        operation.length = length;
        operation.is_write = write;
        return channel_->transfer(operation);
    }
    bool is_content_correct(std::uint64_t position) const {
        for (std::size_t i = 0; i < buffer_.size(); ++i) {
            if (buffer_[i] != content(position + i)) {
                return false;
            }
        }
        return true;
    }

    void transfer_all(bool write) {
        for (std::uint64_t segment = 0; segment < segments; ++segment) {
            for (std::uint64_t slot = 0; slot < block / transfer; ++slot) {
                const std::uint64_t position = offset(segment, slot);
                expect(transfer_and_count(write, position) == transfer,
                       (write ? "write at " : "read at ") + std::to_string(position));
                expect(is_content_correct(position), "content at " + std::to_string(position));
                expect(!channel_->agree_on_stop(false), "agree without a reason");
            }
        }
    }

 private:
    ranks::Team& team_;
    plan::Io io_;
    bool shared_;
    std::unique_ptr<backends::Channel> channel_;
    std::vector<std::byte> buffer_;
};

/// Looks at a file without MPI: all bytes of all tasks, zeros in the gaps, nothing behind. Collective writes of ROMIO
/// fill gaps behind the end of the file with what its buffer held before: nobody promised zeros there.
void inspect(const std::string& path, std::uint64_t tasks, bool gaps) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content_of_file;
    content_of_file << file.rdbuf();
    const std::string text = content_of_file.str();
    expect(text.size() == segments * tasks * (block + gap) - gap, path + ": size " + std::to_string(text.size()));
    for (std::uint64_t position = 0; position < text.size(); ++position) {
        const bool data = position % (block + gap) < block;
        expect((!data && !gaps) || static_cast<std::byte>(text[position]) == (data ? content(position) : std::byte{0}),
               path + ": byte " + std::to_string(position));
    }
}

void write_and_read(ranks::Team& team, const std::string& path, const plan::Io& io, bool shared) {
    TaskFile task(team, io, shared);
    // As in a run: one task creates, unless all open together.
    const bool creates = io.collective || !shared || team.location().is_root();
    for (const bool first : {true, false}) {
        if (creates == first) {
            expect(task.open(path, true, creates) == 0, path + ": open for writing");
        }
        team.all_true(true);
    }
    task.transfer_all(true);
    expect(task->fsync(0) == 0, path + ": fsync");
    expect(task->close(0) == 0, path + ": close");
    team.all_true(true);
    if (!shared || team.location().is_root()) {
        inspect(path, task.tasks(), !io.collective);
    }
    expect(task.open(path, false, false) == 0, path + ": open for reading");
    task.transfer_all(false);
    expect(task->close(0) == 0, path + ": close after reading");
    team.all_true(true);
}

void all_kinds(ranks::Team& team, const std::string& names) {
    for (const bool shared : {false, true}) {
        for (const bool collective : {false, true}) {
            for (const bool view : {false, true}) {
                if (collective && !shared) {
                    continue;
                }
                plan::Io io;
                io.collective = collective;
                io.view = view;
                io.hints = {{"romio_cb_write", "enable"}, {"cb_buffer_size", "65536"}, {"no_such_hint", "1"}};
                std::string path = names + (shared ? "shared" : "own") + (collective ? "-all" : "") +
                                   (view ? "-view" : "") + (shared ? "" : std::to_string(team.location().process));
                write_and_read(team, path, io, shared);
                io.fsync = plan::Fsync::per_op;
                io.preallocate = shared && !collective ? plan::Preallocate::truncate : plan::Preallocate::fallocate;
                write_and_read(team, path + "-synced", io, shared);
            }
        }
    }
}

void check_ends_of_files(ranks::Team& team, const std::string& names) {
    plan::Io io;
    TaskFile task(team, io, false);
    const std::string path = names + "short" + std::to_string(team.location().process);
    expect(task.open(path, true, true) == 0, "open short");
    expect(task.transfer_and_count(true, 0, 700) == 700, "write 700 bytes");
    expect(task.transfer_and_count(false, 0) == 700, "a read over the end moves what is there");
    expect(task.transfer_and_count(false, 5000) == 0, "a read behind the end moves nothing");
    expect(task->close(0) == 0, "close short");
    expect(task.open(names + "none", false, false) == -ENOENT, "a missing file is ENOENT");
    expect(task.open("/proc/sys/kernel/none", true, true) < 0, "a file that cannot be made is an error");
    mkdir((names + "folder").c_str(), 0777);
    expect(task.open(names + "folder", true, false) < 0, "a folder is no file");
    team.all_true(true);
}

void views_show_only_their_blocks(ranks::Team& team, const std::string& names) {
    plan::Io io;
    io.view = true;
    TaskFile task(team, io, true);
    if (team.location().is_root()) {
        expect(task.open(names + "viewed", true, true) == 0, "open viewed");
        const std::uint64_t block_begin = task.offset(1, 0);
        expect(task.transfer_and_count(true, block_begin + block - 10) == -EINVAL,
               "a transfer that leaves the block is refused");
        expect(task.transfer_and_count(true, block_begin + block) == -EINVAL, "a transfer in the gap is refused");
        expect(task.transfer_and_count(true, block_begin + block - transfer) == transfer,
               "the last transfer of a block is not");
        expect(task->close(0) == 0, "close viewed");
    }
    team.all_true(true);
}

/// One task fails, leaves the loop and closes, while the others continue to fsync: no task hangs, and none syncs alone.
void failures_do_not_hang(ranks::Team& team, const std::string& names) {
    plan::Io io;
    io.collective = true;
    TaskFile task(team, io, true);
    expect(task.open(names + "failing", true, true) == 0, "open failing");
    const bool fails = team.location().process == team.location().processes - 1;
    expect(task->agree_on_stop(fails), "agree with one that wants to stop");
    if (!fails) {
        expect(task->fsync(0) == -ECANCELED, "fsync while another closes");
    }
    expect(task->close(0) == 0, "close failing");
    expect(task.open(names + "no/such/folder", true, true) < 0, "a collective open that fails, fails for all");
    team.all_true(true);
}

void refusals(ranks::Team& team) {
    const auto refused = [&](const plan::Io& io, bool shared, const void* mpi, const std::string& word) {
        backends::ChannelSetup setup;
        setup.io = &io;
        setup.shared_file = shared;
        setup.mpi = mpi;
        try {
            backends::find_backend("mpiio")->make_channel(setup);
        } catch (const std::runtime_error& error) {
            return std::string(error.what()).find(word) != std::string::npos;
        }
        return false;
    };
    plan::Io io;
    expect(refused(io, false, nullptr, "mpiexec"), "without MPI");
    io.direct = true;
    expect(refused(io, false, team.mpi_module(), "io.direct"), "direct");
    io.direct = false;
    io.sync_flag = plan::SyncFlag::o_dsync;
    expect(refused(io, false, team.mpi_module(), "io.sync"), "sync");
    io.sync_flag = plan::SyncFlag::none;
    io.preallocate = plan::Preallocate::unwritten;
    expect(refused(io, false, team.mpi_module(), "unwritten"), "unwritten");
    io.preallocate = plan::Preallocate::fallocate;
    expect(refused(io, true, team.mpi_module(), "io.collective"), "preallocating a shared file alone");
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: mpiio-probe FOLDER\n");
        return 2;
    }
    try {
        ranks::TeamRequest request;
        request.need_mpi = true;
        const auto team = ranks::form_team(request);
        // Open MPI 4 names a semaphore after the last part of the path, and waits forever for one that a killed run
        // held.
        const std::string names = std::string(arguments[1]) + "/" + team->broadcast(std::to_string(getpid())) + "-";
        all_kinds(*team, names);
        check_ends_of_files(*team, names);
        views_show_only_their_blocks(*team, names);
        failures_do_not_hang(*team, names);
        refusals(*team);
        if (team->location().is_root()) {
            std::printf("ok %s\n", team->description().c_str());
        }
        team->finish();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "mpiio-probe: %s\n", error.what());
        std::fflush(stderr);
        _exit(1);
    }
}
