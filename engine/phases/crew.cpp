// SPDX-License-Identifier: Apache-2.0
#include "phases/crew.hpp"

namespace sonde::phases {

void Crew::enlist(std::size_t streams) {
    for (std::size_t i = 1; i < streams; ++i) {
        threads_.emplace_back([this, i] {
            word_.wait(Word::wait);
            if (word_.load() == Word::work) {
                work_(i);
            }
        });
    }
}

void Crew::join() {
    for (std::thread& thread : threads_) {
        thread.join();
    }
    threads_.clear();
}

}  // namespace sonde::phases
