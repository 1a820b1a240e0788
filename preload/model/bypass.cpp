// SPDX-License-Identifier: Apache-2.0
#include "model/bypass.hpp"

#include "system/oldest_libc.hpp"
#include "system/raw.hpp"

#include <linux/membarrier.h>
#include <pthread.h>
#include <cerrno>
#include <iterator>

SONDE_OLDEST(pthread_key_create);
SONDE_OLDEST(pthread_setspecific);

namespace sonde::buffer {

constinit thread_local Place* own_bypass_slot __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constinit Place places[64];
constinit std::atomic<std::uint32_t> bypass_slots_used{0};  ///< none behind that many was ever taken
constinit std::atomic<bool> usable{false};
pthread_key_t at_thread_end;

/// Adds what a place has counted to `to`, and begins anew. Who counts there may be another thread at this moment; what
/// it adds between the two halves is lost, which only a report can notice.
void hand_in(Place& place, Passed& to) noexcept {
    for (int direction = 0; direction < 2; ++direction) {
        to.calls[direction].fetch_add(place.passed.calls[direction].exchange(0, std::memory_order_relaxed),
                                      std::memory_order_relaxed);
        to.bytes[direction].fetch_add(place.passed.bytes[direction].exchange(0, std::memory_order_relaxed),
                                      std::memory_order_relaxed);
    }
}

/// Also when the thread was canceled in the middle of a call.
void release_bypass_slot(void* mine) noexcept {
    auto* place = static_cast<Place*>(mine);
    own_bypass_slot = nullptr;
    count_for(*place, nullptr);
    place->file.store(nullptr, std::memory_order_release);
    place->taken.store(false, std::memory_order_release);
}

bool announce_barriers() noexcept {
    return raw::call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

}  // namespace

void start_bypass() noexcept {
    // Values of the first keys have their place in the thread; for others the C library would call malloc.
    constexpr unsigned keys_without_malloc = 32;
    if (!usable && announce_barriers() && pthread_key_create(&at_thread_end, release_bypass_slot) == 0) {
        usable.store(at_thread_end < keys_without_malloc);
    }
}

void acquire_bypass_slot() noexcept {
    if (own_bypass_slot != nullptr || !usable.load(std::memory_order_relaxed)) {
        return;
    }
    const int kept = errno;
    for (Place& one : places) {
        bool taken = false;
        if (one.taken.compare_exchange_strong(taken, true)) {
            if (pthread_setspecific(at_thread_end, &one) == 0) {
                const auto used = static_cast<std::uint32_t>(&one - places) + 1;
                std::uint32_t most = bypass_slots_used.load();
                while (used > most && !bypass_slots_used.compare_exchange_weak(most, used)) {
                }
                own_bypass_slot = &one;
            } else {
                one.taken.store(false);
            }
            break;
        }
    }
    errno = kept;
}

void bypass_after_fork() noexcept {
    usable.store(usable && announce_barriers());
    for (Place& one : places) {
        Passed of_the_parent;
        hand_in(one, of_the_parent);
        one.counted.store(nullptr, std::memory_order_relaxed);
        if (&one != own_bypass_slot) {
            one.file.store(nullptr, std::memory_order_relaxed);
            one.taken.store(false, std::memory_order_relaxed);
        }
    }
}

void count_for(Place& place, File* file) noexcept {
    if (File* const before = place.counted.load(std::memory_order_relaxed)) {
        hand_in(place, before->passed);
    }
    place.counted.store(file, std::memory_order_relaxed);
}

void collect_bypass_counts(File& file) noexcept {
    const std::uint32_t used = bypass_slots_used.load();
    for (std::uint32_t i = 0; i < used; ++i) {
        Place& one = places[i];
        if (one.counted.load(std::memory_order_relaxed) == &file) {
            hand_in(one, file.passed);
            one.counted.store(nullptr, std::memory_order_relaxed);
        }
    }
    Direction* const directions[] = {&file.statistics.read, &file.statistics.write};
    for (int direction = 0; direction < 2; ++direction) {
        const std::uint64_t calls = file.passed.calls[direction].exchange(0, std::memory_order_relaxed);
        const std::uint64_t bytes = file.passed.bytes[direction].exchange(0, std::memory_order_relaxed);
        Direction& one = *directions[direction];
        one.past += calls;
        one.asked += calls;
        one.below += calls;
        one.asked_bytes += bytes;
        one.below_bytes += bytes;
    }
}

int bypass_in_flight(const File& file) noexcept {
    bool others = false;
    for (const Place& one : places) {
        others |= &one != own_bypass_slot && one.taken.load(std::memory_order_seq_cst);
    }
    // Each thread now either sees the new mode or has told us its file.
    if (others && raw::call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        return -1;
    }
    for (const Place& one : places) {
        if (one.file.load(std::memory_order_acquire) == &file) {
            return 1;
        }
    }
    return file.passing.load(std::memory_order_seq_cst) > 0 ? 1 : 0;
}

}  // namespace sonde::buffer
