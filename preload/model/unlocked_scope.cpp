// SPDX-License-Identifier: Apache-2.0
// Waiting without holding up others.
#include "model/unlocked_scope.hpp"

#include "system/clock.hpp"

#include <pthread.h>
#include <cerrno>

namespace sonde::buffer {

UnlockedScope::UnlockedScope(File& file, std::uint64_t* waited) noexcept
    : file_(file), wait_counter_(waited), began_(system::now_ns()), errno_(errno) {
    file.lock.unlock();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
}

void UnlockedScope::end() noexcept {
    pthread_setcancelstate(cancel_, nullptr);
    errno = errno_;
    file_.lock.lock();
    elapsed_ns = system::now_ns() - began_;
    if (wait_counter_ != nullptr) {
        *wait_counter_ += elapsed_ns;
    }
}

void wait_for_change(File& file) noexcept {
    const std::uint64_t began = system::now_ns();
    file.change_condition.wait(file.lock);
    file.statistics.wait_ns += system::now_ns() - began;
}

}  // namespace sonde::buffer
