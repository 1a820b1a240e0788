// SPDX-License-Identifier: Apache-2.0
#include "ranks/wire_process.hpp"

#include "ranks/node_team.hpp"
#include "ranks/wire_message.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <algorithm>
#include <chrono>
#include <cstring>

namespace sonde::ranks {
namespace {

constexpr int death_notice_ticks =
    5;  // the death of a leader is sent in this many ticks, because datagrams may be lost

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// A UDP socket for IPv6 and IPv4, or for IPv4 only where the kernel lacks IPv6.
class UdpSocket {
 public:
    UdpSocket() : socket_(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        const int off = 0;
        is_ipv6_ = *socket_ >= 0 && setsockopt(*socket_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
        if (!is_ipv6_) {
            socket_.close();
            Socket four(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            descriptor_ = four.release();
        } else {
            descriptor_ = socket_.release();
        }
        sockaddr_storage any{};
        any.ss_family = is_ipv6_ ? AF_INET6 : AF_INET;
        const socklen_t size = is_ipv6_ ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        // The kernel chooses the port. Without a port, no messages arrive, and the run continues.
        is_bound_ = descriptor_ >= 0 && bind(descriptor_, reinterpret_cast<const sockaddr*>(&any), size) == 0;
    }
    int descriptor() const { return descriptor_; }

    std::uint16_t port() const {
        sockaddr_storage bound{};
        socklen_t size = sizeof bound;
        if (!is_bound_ || getsockname(descriptor_, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
            return 0;
        }
        return is_ipv6_ ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                        : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port;
    }

    template <class Message>
    void send(const Message& message, const sockaddr_storage& to) const {
        const socklen_t size = to.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        sendto(descriptor_, &message, sizeof message, 0, reinterpret_cast<const sockaddr*>(&to), size);
    }
    template <class Message>
    bool receive(Message& message, sockaddr_storage& from) const {
        socklen_t size = sizeof from;
        return recvfrom(descriptor_, &message, sizeof message, 0, reinterpret_cast<sockaddr*>(&from), &size) ==
               static_cast<ssize_t>(sizeof message);
    }

    /// Converts an address for this socket. Returns false when the socket cannot reach it.
    bool target(const HubAddresses& addresses, std::size_t index, sockaddr_storage& to) const {
        const auto& bytes = addresses.address[index];
        to = {};
        if (is_ipv6_) {
            auto* name = reinterpret_cast<sockaddr_in6*>(&to);
            name->sin6_family = AF_INET6;
            name->sin6_port = addresses.port;
            std::memcpy(&name->sin6_addr, bytes.data(), bytes.size());
            return true;
        }
        auto* name = reinterpret_cast<sockaddr_in*>(&to);
        name->sin_family = AF_INET;
        name->sin_port = addresses.port;
        std::memcpy(&name->sin_addr, bytes.data() + 12, 4);
        return bytes[10] == 0xff && bytes[11] == 0xff;
    }

 private:
    Socket socket_;
    bool is_ipv6_ = false;
    int descriptor_ = -1;
    bool is_bound_ = false;
};

// All addresses of this machine; loopback last, for nodes that are containers on one machine.
HubAddresses list_own_addresses(std::uint16_t port) {
    HubAddresses addresses;
    addresses.port = port;
    ifaddrs* interfaces = nullptr;
    if (getifaddrs(&interfaces) != 0) {
        return addresses;
    }
    for (const bool loopback : {false, true}) {
        for (const ifaddrs* interface = interfaces; interface != nullptr && addresses.count < HubAddresses::max_count;
             interface = interface->ifa_next) {
            if (interface->ifa_addr == nullptr || (interface->ifa_flags & IFF_UP) == 0 ||
                ((interface->ifa_flags & IFF_LOOPBACK) != 0) != loopback) {
                continue;
            }
            auto& bytes = addresses.address[addresses.count];
            if (interface->ifa_addr->sa_family == AF_INET) {
                bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
                std::memcpy(bytes.data() + 12, &reinterpret_cast<const sockaddr_in*>(interface->ifa_addr)->sin_addr, 4);
                ++addresses.count;
            } else if (interface->ifa_addr->sa_family == AF_INET6) {
                const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(interface->ifa_addr)->sin6_addr;
                if (IN6_IS_ADDR_LINKLOCAL(&address) == 0) {
                    std::memcpy(bytes.data(), &address, bytes.size());
                    ++addresses.count;
                }
            }
        }
    }
    freeifaddrs(interfaces);
    return addresses;
}

class WireProcess {
 public:
    WireProcess(Socket line, pid_t leader) : line_(std::move(line)), leader_(leader) {}

    void run() {
        const HubAddresses own_addresses = list_own_addresses(socket_.port());
        int arena = -1;
        if (!send_descriptor(*line_, &own_addresses, sizeof own_addresses, -1) ||
            !receive_descriptor(*line_, &assignment_, sizeof assignment_, arena) || arena < 0) {
            return;
        }
        arena_ = arena;
        void* memory = mmap(nullptr, assignment_.head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena, 0);
        if (memory == MAP_FAILED) {
            return;
        }
        head_ = NodeSharedState::at(static_cast<std::byte*>(memory));
        reports_ = ReportTable(assignment_.nodes);
        // The hub receives all reports, so in large runs every node sends fewer.
        tick_ms_ = std::clamp(assignment_.nodes / 2, 200, 2000);
        hub_report_ = ReportTable(1);
        for (int left = death_notice_ticks; left > 0;) {
            if (!run_tick()) {
                return;
            }
            left -= is_leader_gone_ ? 1 : 0;
        }
    }

 private:
    bool is_hub() const { return assignment_.node == 0; }

    // Runs one tick. Returns false after finish() of the leader.
    bool run_tick() {
        const std::int64_t end = now_ns() + tick_ms_ * 1'000'000LL;
        send_report();
        for (std::int64_t left = tick_ms_; left > 0; left = (end - now_ns()) / 1'000'000) {
            pollfd waits[2] = {{socket_.descriptor(), POLLIN, 0}, {is_leader_gone_ ? -1 : *line_, POLLIN, 0}};
            if (poll(waits, 2, static_cast<int>(left)) <= 0) {
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
        heard.mark_silent_nodes(now_ns(), assignment_.patience_ns, 2'000'000LL * tick_ms_);
        if (!is_hub()) {
            apply_signals(heard.combine_signals(0));
        }
    }

    NodeReport make_report() {
        NodeReport own_report;
        own_report.token = assignment_.token;
        own_report.node = assignment_.node;
        own_report.process = assignment_.process;
        own_report.signals.epoch = head_->stream_barrier.generation();
        own_report.signals.stop = head_->control.stop.load();
        own_report.signals.first_done = head_->control.first_done.load();
        own_report.signals.lost_process = is_leader_gone_ ? assignment_.process : head_->control.lost_process.load();
        own_report.signals.leader_gone = is_leader_gone_ ? NodeSignals::leader_died : 0;
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
            reinterpret_cast<const std::atomic<int>*>(counters_ + head_->progress_counters.used.load())->load();
        for (std::uint64_t stream = 0; stream < static_cast<std::uint64_t>(std::max(used, 0)); ++stream) {
            const std::uint64_t offset =
                head_->progress_counters.first.load() + stream * head_->progress_counters.stride.load();
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
            return;
        }
        if (has_hub_answered_) {
            socket_.send(own_report, hub_address_);
            return;
        }
        // The hub has not answered yet: any of its addresses may be reachable from this node.
        for (std::size_t index = 0; index < assignment_.hub.count; ++index) {
            sockaddr_storage to{};
            if (socket_.target(assignment_.hub, index, to)) {
                socket_.send(own_report, to);
            }
        }
    }

    void receive_messages() {
        sockaddr_storage from{};
        if (is_hub()) {
            NodeReport received;
            while (socket_.receive(received, from)) {
                if (received.token == assignment_.token) {
                    reports_.add_report(received, now_ns());
                    reports_.add_report(make_report(), now_ns());
                    socket_.send(HubReply{assignment_.token, reports_.combine_signals(received.signals.epoch)}, from);
                    apply_signals(reports_.combine_signals(head_->stream_barrier.generation()));
                }
            }
            return;
        }
        HubReply verdict;
        while (socket_.receive(verdict, from)) {
            if (verdict.token == assignment_.token) {
                hub_address_ = from;
                has_hub_answered_ = true;
                NodeReport of_hub;
                of_hub.process = 0;  // the root is the leader of node 0
                hub_report_.add_report(of_hub, now_ns());
                apply_signals(verdict.signals);
            }
        }
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
            head_->control.first_done.store(1);
        }
    }

    Socket line_;
    pid_t leader_;
    UdpSocket socket_;
    WireAssignment assignment_;
    NodeSharedState* head_ = nullptr;
    int arena_ = -1;
    int tick_ms_ = 200;
    const std::byte* counters_ = nullptr;
    ReportTable reports_{0};
    ReportTable hub_report_{0};  // other nodes: last message of the hub
    bool has_hub_answered_ = false;
    sockaddr_storage hub_address_{};  // to the hub, once it answered
    bool is_leader_gone_ = false;     // the leader died
};

}  // namespace

void run_wire_process(Socket line, pid_t leader) {
    WireProcess(std::move(line), leader).run();
    _exit(0);
}

}  // namespace sonde::ranks
