// SPDX-License-Identifier: Apache-2.0
// The task threads of one process in a phase.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace sonde::phases {

/// Threads for all streams of a process except the first, which runs on the main thread. The threads wait until all
/// exist, because a barrier would wait forever for a thread that could not be created.
class StreamThreads {
 public:
    /// `work` receives the number of the stream.
    explicit StreamThreads(std::function<void(std::size_t)> work) : work_(std::move(work)) {}
    ~StreamThreads() {
        send_command(Command::exit);
        join();
    }
    StreamThreads(const StreamThreads&) = delete;
    StreamThreads& operator=(const StreamThreads&) = delete;

    /// Creates the threads of streams 1 … streams - 1. Throws std::system_error when a thread cannot be created.
    void create(std::size_t streams);
    /// Starts `work` in all threads.
    void start() { send_command(Command::work); }
    /// Joins all threads.
    void join();

 private:
    enum class Command : int { wait, work, exit };
    void send_command(Command command) {
        command_.store(command);
        command_.notify_all();
    }

    std::function<void(std::size_t)> work_;
    std::atomic<Command> command_{Command::wait};
    std::vector<std::thread> threads_;
};

}  // namespace sonde::phases
