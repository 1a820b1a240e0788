// SPDX-License-Identifier: Apache-2.0
#include "system/threads.hpp"

#include "system/oldest_libc.hpp"
#include "system/raw.hpp"

#include <pthread.h>
#include <signal.h>
#include <cerrno>
#include <ctime>

SONDE_OLDEST(pthread_create);
SONDE_OLDEST(pthread_attr_setstacksize);

namespace sonde::buffer {

std::uint32_t start_threads(void* (*run)(void*) noexcept, std::uint32_t count) noexcept {
    constexpr std::size_t stack_bytes = 256U << 10U;
    // All but the two that libc needs in every thread (setuid() waits for them): 32 and 33, bits 31 and 32.
    const std::uint64_t all = ~(std::uint64_t{3} << 31U);
    std::uint64_t before = 0;
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::pointer_to_number(&all), raw::pointer_to_number(&before),
              sizeof(all));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    std::uint32_t started = 0;
    while (started < count) {
        pthread_t thread{};
        if (pthread_create(&thread, &attributes, run, nullptr) != 0) {
            break;
        }
        ++started;
    }
    pthread_attr_destroy(&attributes);
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::pointer_to_number(&before), 0, sizeof(before));
    return started;
}

void wait_for_thread_end(long thread) noexcept {
    constexpr std::int64_t patience_ns = 200'000'000, nap_ns = 50'000;
    const long process = raw::call(SYS_getpid);
    for (std::int64_t napped = 0; napped < patience_ns; napped += nap_ns) {
        if (raw::call(SYS_tgkill, process, thread, 0) == -ESRCH) {
            return;
        }
        const timespec nap{0, nap_ns};
        raw::call(SYS_nanosleep, raw::pointer_to_number(&nap), 0);
    }
}

}  // namespace sonde::buffer
