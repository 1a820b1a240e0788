// SPDX-License-Identifier: Apache-2.0
// The threads of one process in a phase.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace sonde::phases {

/// The threads of a process's streams but the first, which is the main thread's. They wait until all have been made:
/// a barrier would wait for ever for one that the system refused.
class Crew {
 public:
    /// `work` gets the number of the stream.
    explicit Crew(std::function<void(std::size_t)> work) : work_(std::move(work)) {}
    ~Crew() {
        let(Word::leave);
        join();
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    /// Makes the threads of streams 1 ... streams - 1. Throws std::system_error when one cannot be made.
    void enlist(std::size_t streams);
    /// Lets them work.
    void start() { let(Word::work); }
    /// Waits for all to end.
    void join();

 private:
    enum class Word : int { wait, work, leave };
    void let(Word word) {
        word_.store(word);
        word_.notify_all();
    }

    std::function<void(std::size_t)> work_;
    std::atomic<Word> word_{Word::wait};
    std::vector<std::thread> threads_;
};

}  // namespace sonde::phases
