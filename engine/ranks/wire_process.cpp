// SPDX-License-Identifier: Apache-2.0
#include "ranks/wire_process.hpp"

#include "ranks/node_team.hpp"

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

constexpr int last_words = 5;  // how many ticks the death of a leader is repeated: datagrams get lost

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// A UDP socket for both kinds of addresses where the kernel has both.
class Radio {
 public:
    Radio() : socket_(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        const int off = 0;
        six_ = *socket_ >= 0 && setsockopt(*socket_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
        if (!six_) {
            socket_.close();
            Socket four(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            descriptor_ = four.release();
        } else {
            descriptor_ = socket_.release();
        }
        sockaddr_storage any{};
        any.ss_family = six_ ? AF_INET6 : AF_INET;
        const socklen_t size = six_ ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        // A port of the kernel's choice; without one, nobody is heard, and that is all.
        bound_ = descriptor_ >= 0 && bind(descriptor_, reinterpret_cast<const sockaddr*>(&any), size) == 0;
    }
    int descriptor() const { return descriptor_; }

    std::uint16_t port() const {
        sockaddr_storage bound{};
        socklen_t size = sizeof bound;
        if (!bound_ || getsockname(descriptor_, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
            return 0;
        }
        return six_ ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
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

    /// An entry of Addresses as this socket wants it. False: out of reach for it.
    bool target(const Addresses& addresses, std::size_t index, sockaddr_storage& to) const {
        const auto& bytes = addresses.address[index];
        to = {};
        if (six_) {
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
    bool six_ = false;
    int descriptor_ = -1;
    bool bound_ = false;
};

// All addresses that other machines might know this one by; loopback last, for nodes that are containers of one
// machine.
Addresses own_addresses(std::uint16_t port) {
    Addresses found;
    found.port = port;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) {
        return found;
    }
    for (const bool loopback : {false, true}) {
        for (const ifaddrs* one = all; one != nullptr && found.count < Addresses::most; one = one->ifa_next) {
            if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 ||
                ((one->ifa_flags & IFF_LOOPBACK) != 0) != loopback) {
                continue;
            }
            auto& bytes = found.address[found.count];
            if (one->ifa_addr->sa_family == AF_INET) {
                bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
                std::memcpy(bytes.data() + 12, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, 4);
                ++found.count;
            } else if (one->ifa_addr->sa_family == AF_INET6) {
                const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
                if (IN6_IS_ADDR_LINKLOCAL(&address) == 0) {
                    std::memcpy(bytes.data(), &address, bytes.size());
                    ++found.count;
                }
            }
        }
    }
    freeifaddrs(all);
    return found;
}

class WireProcess {
 public:
    WireProcess(Socket line, pid_t leader) : line_(std::move(line)), leader_(leader) {}

    void run() {
        const Addresses mine = own_addresses(radio_.port());
        int arena = -1;
        if (!send_descriptor(*line_, &mine, sizeof mine, -1) ||
            !receive_descriptor(*line_, &task_, sizeof task_, arena) || arena < 0) {
            return;
        }
        arena_ = arena;
        void* memory = mmap(nullptr, task_.head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena, 0);
        if (memory == MAP_FAILED) {
            return;
        }
        head_ = NodeHead::at(static_cast<std::byte*>(memory));
        tally_ = Tally(task_.nodes);
        // The hub hears from all: on large runs everybody speaks less often.
        tick_ms_ = std::clamp(task_.nodes / 2, 200, 2000);
        hub_tally_ = Tally(1);
        for (int left = last_words; left > 0;) {
            if (!listen()) {
                return;
            }
            left -= gone_ ? 1 : 0;
        }
    }

 private:
    bool hub() const { return task_.node == 0; }

    // One tick. False when the leader said goodbye.
    bool listen() {
        const std::int64_t end = now_ns() + tick_ms_ * 1'000'000LL;
        speak();
        for (std::int64_t left = tick_ms_; left > 0; left = (end - now_ns()) / 1'000'000) {
            pollfd waits[2] = {{radio_.descriptor(), POLLIN, 0}, {gone_ ? -1 : *line_, POLLIN, 0}};
            if (poll(waits, 2, static_cast<int>(left)) <= 0) {
                break;
            }
            if (waits[0].revents != 0) {
                hear();
            }
            if (waits[1].revents != 0) {
                char bye = 0;
                int none = -1;
                if (receive_descriptor(*line_, &bye, 1, none)) {
                    return false;
                }
                gone_ = true;
            }
        }
        // A forked child of the leader may hold the line open: the parent's number tells as well.
        gone_ = gone_ || getppid() != leader_;
        give_up_silent();
        return true;
    }

    // A machine without power closes no connection: only its silence tells.
    void give_up_silent() {
        Tally& heard = hub() ? tally_ : hub_tally_;
        heard.give_up_silent(now_ns(), task_.patience_ns, 2'000'000LL * tick_ms_);
        if (!hub()) {
            obey(heard.verdict(0));
        }
    }

    Report report() {
        Report mine;
        mine.token = task_.token;
        mine.node = task_.node;
        mine.process = task_.process;
        mine.signals.epoch = head_->streams.generation();
        mine.signals.stop = head_->control.stop.load();
        mine.signals.first_done = head_->control.first_done.load();
        mine.signals.lost_process = gone_ ? task_.process : head_->control.lost_process.load();
        mine.signals.leader_gone = gone_ ? Signals::leader_died : 0;
        count(mine);
        return mine;
    }

    void count(Report& mine) {
        const std::uint64_t mapped = head_->counted.bytes.load(std::memory_order_acquire);
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
        const auto word = [this](std::uint64_t at) {
            return reinterpret_cast<const std::atomic<std::uint64_t>*>(counters_ + at)->load(std::memory_order_relaxed);
        };
        const int used = reinterpret_cast<const std::atomic<int>*>(counters_ + head_->counted.used.load())->load();
        for (std::uint64_t stream = 0; stream < static_cast<std::uint64_t>(std::max(used, 0)); ++stream) {
            const std::uint64_t at = head_->counted.first.load() + stream * head_->counted.stride.load();
            mine.bytes += word(at);
            mine.operations += word(at + sizeof(std::uint64_t));
        }
    }

    void speak() {
        const Report mine = report();
        if (hub()) {
            tally_.note(mine, now_ns());
            obey(tally_.verdict(mine.signals.epoch));
            const Tally::Progress others = tally_.progress(mine.signals.epoch, task_.node, now_ns());
            head_->remote_bytes.store(others.bytes);
            head_->remote_operations.store(others.operations);
            head_->remote_nodes.store(others.nodes);
            return;
        }
        if (answered_) {
            radio_.send(mine, way_);
            return;
        }
        // Nobody has answered yet: any of the hub's addresses may be the one that can be reached from here.
        for (std::size_t index = 0; index < task_.hub.count; ++index) {
            sockaddr_storage to{};
            if (radio_.target(task_.hub, index, to)) {
                radio_.send(mine, to);
            }
        }
    }

    void hear() {
        sockaddr_storage from{};
        if (hub()) {
            Report theirs;
            while (radio_.receive(theirs, from)) {
                if (theirs.token == task_.token) {
                    tally_.note(theirs, now_ns());
                    tally_.note(report(), now_ns());
                    radio_.send(Verdict{task_.token, tally_.verdict(theirs.signals.epoch)}, from);
                    obey(tally_.verdict(head_->streams.generation()));
                }
            }
            return;
        }
        Verdict verdict;
        while (radio_.receive(verdict, from)) {
            if (verdict.token == task_.token) {
                way_ = from;
                answered_ = true;
                Report of_hub;
                of_hub.process = 0;  // the root is the leader of node 0
                hub_tally_.note(of_hub, now_ns());
                obey(verdict.signals);
            }
        }
    }

    void obey(const Signals& signals) {
        if (gone_) {
            return;
        }
        if (signals.leader_gone != 0) {
            if (signals.leader_gone == Signals::leader_silent) {
                head_->control.lost_in_silence.store(1);
            }
            head_->lose_process(signals.lost_process, NodeHead::everywhere);
        }
        if (signals.epoch != head_->streams.generation()) {
            return;
        }
        if (signals.stop != 0) {
            if (signals.stop == NodeControl::quit_peer_lost) {
                int none = -1;
                head_->control.lost_process.compare_exchange_strong(none, signals.lost_process);
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
    Radio radio_;
    Wire::Task task_;
    NodeHead* head_ = nullptr;
    int arena_ = -1;
    int tick_ms_ = 200;
    const std::byte* counters_ = nullptr;
    Tally tally_{0};
    Tally hub_tally_{0};  // of what is not the hub: when that was heard last
    bool answered_ = false;
    sockaddr_storage way_{};  // to the hub, once it answered
    bool gone_ = false;       // the leader died
};

}  // namespace

void run_wire(Socket line, pid_t leader) {
    WireProcess(std::move(line), leader).run();
    _exit(0);
}

}  // namespace sonde::ranks
