// SPDX-License-Identifier: Apache-2.0
#include "ranks/ssh_module.hpp"

#include "ranks/frame_link.hpp"
#include "ranks/launcher.hpp"
#include "ranks/team_error.hpp"

#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace sonde::ranks {
namespace {

/// Sends and receives for one process. All exchanges are made of messages between two processes, and those from one to
/// another arrive in order, so the n-th message that is received from a process is the n-th that it sent.
class MessageEndpoint {
 public:
    MessageEndpoint(int socket, int process, int processes)
        : link_(socket, socket), process_(process), processes_(processes) {}

    int process() const { return process_; }
    int processes() const { return processes_; }
    const std::string& last_error() const { return last_error_; }
    void set_wait_callback(int (*keep_waiting)(void*), void* context) {
        keep_waiting_ = keep_waiting;
        wait_callback_context_ = context;
    }

    /// To one process, or to `all_processes`. Returns 0 or a negative errno.
    int send(int to, const void* data, std::size_t bytes) {
        link_.append({FrameKind::message, process_, to, std::string(static_cast<const char*>(data), bytes)});
        while (link_.has_unsent()) {
            if (!link_.flush()) {
                return fail("the node command of this host is gone");
            }
            if (const int error = link_.has_unsent() ? wait_for(POLLIN | POLLOUT) : 0; error != 0) {
                return error;
            }
        }
        return 0;
    }

    int receive(int from, void* data, std::size_t bytes) {
        std::deque<std::string>& arrived = arrived_messages_[from];
        while (arrived.empty()) {
            if (has_ended_[from]) {
                return fail("process " + std::to_string(from) + " has ended");
            }
            if (const int error = wait_for(POLLIN); error != 0) {
                return error;
            }
        }
        if (arrived.front().size() != bytes) {
            return fail("process " + std::to_string(from) + " sent " + std::to_string(arrived.front().size()) +
                        " bytes where " + std::to_string(bytes) + " were expected");
        }
        std::memcpy(data, arrived.front().data(), bytes);
        arrived.pop_front();
        return 0;
    }

 private:
    int fail(std::string reason) {
        last_error_ = std::move(reason);
        return -EPIPE;
    }

    /// Waits for one of these events and takes what has arrived.
    int wait_for(int events) {
        constexpr int watch_interval_ms = 20;
        pollfd ready{link_.input(), static_cast<short>(events), 0};
        poll(&ready, 1, watch_interval_ms);
        if (keep_waiting_ != nullptr && keep_waiting_(wait_callback_context_) == 0) {
            last_error_ = "the wait was ended";
            return -ECANCELED;
        }
        const bool is_open = (ready.revents & (POLLIN | POLLHUP | POLLERR)) == 0 || link_.read_available();
        bool has_arrived = false;
        try {
            while (std::optional<Frame> frame = link_.take_frame()) {
                has_arrived = true;
                if (frame->kind == FrameKind::message) {
                    arrived_messages_[frame->from].push_back(std::move(frame->content));
                } else if (frame->kind == FrameKind::ended) {
                    has_ended_[frame->from] = true;
                }
            }
        } catch (const TeamError& error) {
            return fail(error.what());
        }
        return is_open || has_arrived ? 0 : fail("the node command of this host is gone");
    }

    FrameLink link_;
    int process_, processes_;
    std::map<int, std::deque<std::string>> arrived_messages_;
    std::map<int, bool> has_ended_;
    std::string last_error_;
    int (*keep_waiting_)(void*) = nullptr;
    void* wait_callback_context_ = nullptr;
};

// One process has one endpoint, as it has one MPI.
std::unique_ptr<MessageEndpoint> endpoint;
std::string start_error;
std::vector<int> leaders;
int leader_number = 0;

int start(int* rank, int* size, char* library, size_t library_size) {
    const char* socket = std::getenv(ssh_socket_variable);
    const LaunchEnvironment launch = detect_launch();
    if (socket == nullptr || launch.launcher != "ssh") {
        start_error = "this process was not started by `sonde-engine ssh`";
        return -EINVAL;
    }
    endpoint = std::make_unique<MessageEndpoint>(std::atoi(socket), launch.process, launch.processes);
    *rank = launch.process;
    *size = launch.processes;
    std::snprintf(library, library_size, "ssh");
    return 0;
}

int stop() {
    endpoint.reset();
    return 0;
}

void set_wait_callback(int (*keep_waiting)(void*), void* context) {
    if (endpoint) {
        endpoint->set_wait_callback(keep_waiting, context);
    }
}

int allgather(const void* own_part, size_t bytes, void* all) {
    const auto processes = static_cast<std::size_t>(endpoint->processes());
    if (endpoint->process() != 0) {
        const int error = endpoint->send(0, own_part, bytes);
        return error != 0 ? error : endpoint->receive(0, all, bytes * processes);
    }
    std::memcpy(all, own_part, bytes);
    for (int other = 1; other < endpoint->processes(); ++other) {
        char* part = static_cast<char*>(all) + static_cast<std::size_t>(other) * bytes;
        if (const int error = endpoint->receive(other, part, bytes); error != 0) {
            return error;
        }
    }
    return endpoint->send(all_processes, all, bytes * processes);
}

int set_leaders(const int* ranks, int count) {
    leaders.assign(ranks, ranks + count);
    leader_number = static_cast<int>(std::find(leaders.begin(), leaders.end(), endpoint->process()) - leaders.begin());
    return 0;
}

int send(int leader, const void* data, size_t bytes) {
    return endpoint->send(leaders[static_cast<std::size_t>(leader)], data, bytes);
}

int receive(int leader, void* data, size_t bytes) {
    return endpoint->receive(leaders[static_cast<std::size_t>(leader)], data, bytes);
}

int leaders_broadcast(void* data, size_t bytes) {
    if (leader_number != 0) {
        return receive(0, data, bytes);
    }
    for (int leader = 1; leader < static_cast<int>(leaders.size()); ++leader) {
        if (const int error = send(leader, data, bytes); error != 0) {
            return error;
        }
    }
    return 0;
}

int leaders_maximum(uint64_t* values, size_t count) {
    const std::size_t bytes = count * sizeof *values;
    if (leader_number != 0) {
        const int error = send(0, values, bytes);
        return error != 0 ? error : receive(0, values, bytes);
    }
    std::vector<uint64_t> others(count);
    for (int leader = 1; leader < static_cast<int>(leaders.size()); ++leader) {
        if (const int error = receive(leader, others.data(), bytes); error != 0) {
            return error;
        }
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = std::max(values[i], others[i]);
        }
    }
    return leaders_broadcast(values, bytes);
}

const char* last_error_message() {
    return endpoint ? endpoint->last_error().c_str() : start_error.c_str();
}

}  // namespace

const SondeMpiModule* ssh_module() {
    static const SondeMpiModule table = [] {
        SondeMpiModule functions{};
        functions.version = SONDE_MPI_MODULE_VERSION;
        functions.flavor = "no MPI";
        functions.start = start;
        functions.stop = stop;
        functions.set_wait_callback = set_wait_callback;
        functions.allgather = allgather;
        functions.set_members = [](int) { return 0; };  // who opens shared files with MPI-IO: nobody
        functions.set_leaders = set_leaders;
        functions.leaders_maximum = leaders_maximum;
        functions.leaders_broadcast = leaders_broadcast;
        functions.send = send;
        functions.receive = receive;
        functions.last_error_message = last_error_message;
        return functions;
    }();
    return &table;
}

}  // namespace sonde::ranks
