// SPDX-License-Identifier: Apache-2.0
#include "phases/stream_threads.hpp"

namespace sonde::phases {

void StreamThreads::create(std::size_t streams) {
    for (std::size_t i = 1; i < streams; ++i) {
        threads_.emplace_back([this, i] {
            command_.wait(Command::wait);
            if (command_.load() == Command::work) {
                work_(i);
            }
        });
    }
}

void StreamThreads::join() {
    for (std::thread& thread : threads_) {
        thread.join();
    }
    threads_.clear();
}

}  // namespace sonde::phases
