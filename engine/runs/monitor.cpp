// SPDX-License-Identifier: Apache-2.0
#include "runs/monitor.hpp"

#include "phases/outcome.hpp"
#include "records/writer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>

namespace sonde::runs {
namespace {

struct ProgressSample {
    int phase = -1;
    std::int64_t at_ns = 0;
    std::uint64_t bytes = 0, operations = 0;
};

void write_progress(records::Writer& record, phases::ProgressBoard& board, ranks::Team& team,
                    const std::vector<std::string>& ids, ProgressSample& last) {
    ProgressSample now;
    now.phase = board.phase_index.load();
    if (now.phase < 0) {
        last = now;
        return;
    }
    const std::int64_t start = board.timed_part_start_ns.load();
    now.at_ns = meters::Clock::monotonic_ns() - start;
    if (start == 0 || now.at_ns <= 0) {
        return;
    }
    int active = 0;
    for (int i = 0; i < board.stream_count.load(); ++i) {
        const meters::StreamMeter::LiveCounters& live = board.meter(i).live_counters;
        now.bytes += live.bytes.load(std::memory_order_relaxed);
        now.operations += live.operations.load(std::memory_order_relaxed);
        active += live.active.load(std::memory_order_relaxed) != 0 ? 1 : 0;
    }
    const ranks::Team::RemoteProgress remote = team.remote_progress();
    now.bytes += remote.bytes;
    now.operations += remote.operations;
    const bool same = last.phase == now.phase;
    const double interval = static_cast<double>(now.at_ns - (same ? last.at_ns : 0)) / 1e9;
    const std::uint64_t bytes_before = same ? last.bytes : 0;
    const std::uint64_t operations_before = same ? last.operations : 0;
    nlohmann::ordered_json line{{"phase", ids.at(static_cast<std::size_t>(now.phase))},
                                {"phase_s", static_cast<double>(now.at_ns) / 1e9},
                                {"bytes", now.bytes},
                                {"ops", now.operations},
                                {"active", active},
                                {"nodes_seen", 1 + remote.nodes}};
    if (interval > 0 && now.bytes >= bytes_before) {
        line["bytes_per_s"] = static_cast<double>(now.bytes - bytes_before) / interval;
        line["ops_per_s"] = static_cast<double>(now.operations - operations_before) / interval;
    }
    const std::uint64_t planned =
        board.planned_operations.load() * static_cast<std::uint64_t>(std::max(1, team.location().nodes));
    const std::int64_t limit = board.time_limit_ns.load();
    double share = planned > 0 ? static_cast<double>(now.operations) / static_cast<double>(planned) : 0.0;
    share = limit > 0 ? std::max(share, static_cast<double>(now.at_ns) / static_cast<double>(limit)) : share;
    if (planned > 0 || limit > 0) {
        line["percent"] = std::min(100.0, 100.0 * share);
    }
    record.write_line("progress", line);
    last = now;
}

[[noreturn]] void run_monitor(phases::ProgressBoard& board, ranks::Team& team, const files::RecordFile& file,
                              std::int64_t epoch_ns, std::int64_t interval_ns, const std::vector<std::string>& ids,
                              int pipe) {
    // Signals are for the tasks; the monitor ends after them. A separate session protects the monitor from launchers
    // that kill process groups, so that it can complete the record.
    setsid();
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM}) {
        std::signal(number, SIG_IGN);
    }
    ProgressSample last;
    try {
        // An open file description of its own: a shared offset would hide what the other process has written.
        const files::RecordFile own_file = file.reopen();
        records::Writer record(own_file.descriptor(), own_file.path(), epoch_ns);
        record.share_record(&board.writer_lock, records::Writer::Role::monitor);
        const std::int64_t pause_ms = std::clamp<std::int64_t>(interval_ns / 1'000'000, 1, 3'600'000);
        for (;;) {
            pollfd wait{pipe, POLLIN, 0};
            const int ready = ::poll(&wait, 1, interval_ns <= 0 ? -1 : static_cast<int>(pause_ms));
            if (ready > 0) {
                break;  // the pipe was closed: the engine has ended
            }
            if (interval_ns > 0) {
                write_progress(record, board, team, ids, last);
            }
        }
        if (board.is_run_finished.load() == 0) {
            record.share_record(nullptr, records::Writer::Role::monitor);
            record.remove_incomplete_line();
            const bool ending = team.control().stop.load() == ranks::NodeControl::quit_interrupt;
            record.write_line(
                "end",
                {{"status", "lost"},
                 {"exit_code", ending ? phases::exit_interrupted : phases::exit_failed},
                 {"seconds", static_cast<double>(meters::Clock::monotonic_ns() - epoch_ns) / 1e9},
                 {"text", std::string(ending ? "the engine was ended at once while it was stopping"
                                             : "the engine was killed before it could finish") +
                              ": finished phases are above, and `sonde clean` removes what it left on the target"}});
        }
    } catch (const std::exception&) {
        _exit(1);  // the engine reports errors of the record
    }
    _exit(0);
}

}  // namespace

Monitor::Monitor(phases::ProgressBoard& board, ranks::Team& team, const files::RecordFile& record,
                 std::int64_t epoch_ns, std::int64_t interval_ns, const std::vector<std::string>& phase_ids) {
    int ends[2];
    if (record.path().empty() || ::pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[1]);
        run_monitor(board, team, record, epoch_ns, interval_ns, phase_ids, ends[0]);
    }
    ::close(ends[0]);
    if (child < 0) {
        ::close(ends[1]);
        return;  // the run continues without progress lines
    }
    pid_ = child;
    pipe_ = ends[1];
}

Monitor::~Monitor() {
    if (pid_ < 0) {
        return;
    }
    ::close(pipe_);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace sonde::runs
