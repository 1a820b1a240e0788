// SPDX-License-Identifier: Apache-2.0
#include "ranks/wire_process.hpp"

#include "ranks/node_team.hpp"
#include "ranks/wire_message.hpp"
#include "ranks/wire_socket.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <algorithm>
#include <chrono>

namespace sonde::ranks {
namespace {

constexpr int death_notice_ticks =
    5;  // the death of a leader is sent in this many ticks, because datagrams may be lost
constexpr int max_datagrams_per_batch =
    512;  // datagrams between two looks at the clock, so that a flood cannot stop the reports

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

class WireProcess {
 public:
    WireProcess(Socket line, pid_t leader) : line_(std::move(line)), leader_(leader) {}

    void run() {
        WireOpening opening;
        int arena = -1;
        if (!receive_descriptor(*line_, &opening, sizeof opening, arena)) {
            return;  // one node: finish() without any socket
        }
        if (opening.is_hub != 0) {
            socket_.bind_to(opening.hub);
        } else if (opening.hub.port != 0) {
            socket_.connect_to(opening.hub);
        }
        const NodeAddress own_address = socket_.own_address();
        if (!send_descriptor(*line_, &own_address, sizeof own_address, -1) ||
            !receive_descriptor(*line_, &assignment_, sizeof assignment_, arena) || arena < 0) {
            return;
        }
        arena_ = arena;
        void* memory = mmap(nullptr, assignment_.head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena, 0);
        if (memory == MAP_FAILED) {
            return;
        }
        head_ = NodeSharedState::attach(static_cast<std::byte*>(memory));
        reports_ = ReportTable(assignment_.nodes);
        replay_guard_ = ReplayGuard(assignment_.nodes);
        // The hub receives all reports, so in large runs every node sends fewer.
        tick_ms_ = std::clamp(assignment_.nodes / 2, 200, 2000);
        hub_report_ = ReportTable(1);
        for (int ticks = death_notice_ticks; ticks > 0;) {
            if (!run_tick()) {
                return;
            }
            ticks -= is_leader_gone_ ? 1 : 0;
        }
    }

 private:
    bool is_hub() const { return assignment_.node == 0; }

    // Runs one tick. Returns false after finish() of the leader.
    bool run_tick() {
        const std::int64_t end = now_ns() + tick_ms_ * 1'000'000LL;
        send_report();
        for (std::int64_t wait_ms = tick_ms_; wait_ms > 0; wait_ms = (end - now_ns()) / 1'000'000) {
            pollfd waits[2] = {{socket_.descriptor(), POLLIN, 0}, {is_leader_gone_ ? -1 : *line_, POLLIN, 0}};
            if (poll(waits, 2, static_cast<int>(wait_ms)) <= 0) {
                break;
            }
            if (waits[0].revents != 0) {
                receive_messages();
            }
            if (waits[1].revents != 0) {
                char bye = 0;
                int no_process = -1;
                if (receive_descriptor(*line_, &bye, 1, no_process)) {
                    return false;
                }
                is_leader_gone_ = true;
            }
        }
        // A forked child of the leader may keep the connection open, so the parent process id is checked too.
        is_leader_gone_ = is_leader_gone_ || getppid() != leader_;
        mark_silent_nodes();
        return true;
    }

    // A machine that lost power closes no connection; only missing reports show it.
    void mark_silent_nodes() {
        ReportTable& heard = is_hub() ? reports_ : hub_report_;
        heard.mark_silent_nodes(now_ns(), assignment_.patience_ns, 2'000'000LL * tick_ms_, socket_.take_overflow());
        if (!is_hub()) {
            apply_signals(heard.combine_signals(0));
        }
    }

    NodeReport make_report() {
        NodeReport own_report;
        own_report.node = assignment_.node;
        own_report.process = assignment_.process;
        own_report.signals.epoch = head_->stream_barrier.generation();
        own_report.signals.stop = head_->control.stop.load();
        own_report.signals.first_done = head_->control.is_first_task_done.load();
        own_report.signals.lost_process = is_leader_gone_ ? assignment_.process : head_->control.lost_process.load();
        own_report.signals.leader_gone = is_leader_gone_ ? NodeSignals::leader_died : 0;
        own_report.foreign = rejected_.foreign;
        own_report.repeated = static_cast<std::uint32_t>(std::min<std::uint64_t>(rejected_.repeated, UINT32_MAX));
        add_progress(own_report);
        return own_report;
    }

    void add_progress(NodeReport& own_report) {
        const std::uint64_t mapped = head_->progress_counters.bytes.load(std::memory_order_acquire);
        if (mapped == 0) {
            return;
        }
        if (counters_ == nullptr) {
            void* memory = mmap(nullptr, mapped, PROT_READ, MAP_SHARED, arena_, 0);
            counters_ = memory != MAP_FAILED ? static_cast<const std::byte*>(memory) : nullptr;
        }
        if (counters_ == nullptr) {
            return;
        }
        const auto load_counter = [this](std::uint64_t offset) {
            return reinterpret_cast<const std::atomic<std::uint64_t>*>(counters_ + offset)
                ->load(std::memory_order_relaxed);
        };
        const int used =
            reinterpret_cast<const std::atomic<int>*>(counters_ + head_->progress_counters.count_offset.load())->load();
        for (std::uint64_t stream = 0; stream < static_cast<std::uint64_t>(std::max(used, 0)); ++stream) {
            const std::uint64_t offset =
                head_->progress_counters.first_offset.load() + stream * head_->progress_counters.offset_stride.load();
            own_report.bytes += load_counter(offset);
            own_report.operations += load_counter(offset + sizeof(std::uint64_t));
        }
    }

    void send_report() {
        const NodeReport own_report = make_report();
        if (is_hub()) {
            reports_.add_report(own_report, now_ns());
            apply_signals(reports_.combine_signals(own_report.signals.epoch));
            const ReportTable::OtherNodesProgress others =
                reports_.sum_progress(own_report.signals.epoch, assignment_.node, now_ns());
            head_->remote_bytes.store(others.bytes);
            head_->remote_operations.store(others.operations);
            head_->remote_nodes.store(others.nodes);
            const RejectedDatagrams rejected = reports_.sum_rejected();
            head_->foreign_datagrams.store(rejected.foreign);
            head_->repeated_datagrams.store(rejected.repeated);
            return;
        }
        Datagram<NodeReport> datagram;
        datagram.message = own_report;
        sign(datagram);
        socket_.send(&datagram, sizeof datagram);
    }

    template <class Message>
    void sign(Datagram<Message>& datagram) {
        datagram.sequence = ++last_sent_;
        datagram.sign(assignment_.key);
    }

    /// Receives the next datagram. Returns false when there is none; `is_valid` says whether it may be used.
    template <class Message>
    bool receive(Datagram<Message>& datagram, sockaddr_storage& from, bool& is_valid) {
        const ssize_t bytes = socket_.receive(&datagram, sizeof datagram, from);
        if (bytes < 0) {
            return false;
        }
        is_valid = false;
        if (bytes != static_cast<ssize_t>(sizeof datagram) || !datagram.is_authentic(assignment_.key)) {
            ++rejected_.foreign;
        } else if (!is_expected(datagram.message) ||
                   !replay_guard_.accept(is_hub() ? datagram.message.node : 0, datagram.sequence)) {
            ++rejected_.repeated;
        } else {
            is_valid = true;
        }
        return true;
    }

    // A reply to another node that somebody sent here.
    bool is_expected(const HubReply& reply) const { return reply.node == assignment_.node; }
    bool is_expected(const NodeReport& report) const { return report.node != assignment_.node; }

    void receive_messages() {
        sockaddr_storage from{};
        bool is_valid = false;
        if (is_hub()) {
            Datagram<NodeReport> received;
            for (int count = 0; count < max_datagrams_per_batch && receive(received, from, is_valid); ++count) {
                if (is_valid) {
                    adopt_report(received.message, from);
                }
            }
            return;
        }
        Datagram<HubReply> reply;
        for (int count = 0; count < max_datagrams_per_batch && receive(reply, from, is_valid); ++count) {
            if (is_valid) {
                NodeReport of_hub;
                of_hub.process = 0;  // the root is the leader of node 0
                hub_report_.add_report(of_hub, now_ns());
                apply_signals(reply.message.signals);
            }
        }
    }

    void adopt_report(const NodeReport& report, const sockaddr_storage& from) {
        reports_.add_report(report, now_ns());
        reports_.add_report(make_report(), now_ns());
        Datagram<HubReply> reply;
        reply.message.node = report.node;
        reply.message.signals = reports_.combine_signals(report.signals.epoch);
        sign(reply);
        socket_.send(&reply, sizeof reply, from);
        apply_signals(reports_.combine_signals(head_->stream_barrier.generation()));
    }

    void apply_signals(const NodeSignals& signals) {
        if (is_leader_gone_) {
            return;
        }
        if (signals.leader_gone != 0) {
            if (signals.leader_gone == NodeSignals::leader_silent) {
                head_->control.is_lost_by_timeout.store(1);
            }
            head_->mark_process_lost(signals.lost_process, NodeSharedState::all_nodes);
        }
        if (signals.epoch != head_->stream_barrier.generation()) {
            return;
        }
        if (signals.stop != 0) {
            if (signals.stop == NodeControl::quit_peer_lost) {
                int no_process = -1;
                head_->control.lost_process.compare_exchange_strong(no_process, signals.lost_process);
            }
            std::uint32_t running = 0;
            head_->control.stop.compare_exchange_strong(running, signals.stop);
        }
        if (signals.first_done != 0) {
            head_->control.is_first_task_done.store(1);
        }
    }

    Socket line_;
    pid_t leader_;
    WireSocket socket_;
    WireProcessSettings assignment_;
    NodeSharedState* head_ = nullptr;
    int arena_ = -1;
    int tick_ms_ = 200;
    const std::byte* counters_ = nullptr;
    ReportTable reports_{0};
    ReportTable hub_report_{0};  // other nodes: last message of the hub
    ReplayGuard replay_guard_{1};
    std::uint64_t last_sent_ = 0;  // sequence number
    RejectedDatagrams rejected_;
    bool is_leader_gone_ = false;  // the leader died
};

}  // namespace

void run_wire_process(Socket line, pid_t leader) {
    WireProcess(std::move(line), leader).run();
    _exit(0);
}

}  // namespace sonde::ranks
