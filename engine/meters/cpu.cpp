// SPDX-License-Identifier: Apache-2.0
#include "meters/cpu.hpp"

#include <sys/resource.h>

namespace sonde::meters {

CpuTime thread_cpu() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto ns = [](const timeval& t) {
        return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_usec) * 1000U;
    };
    return {ns(usage.ru_utime), ns(usage.ru_stime)};
}

}  // namespace sonde::meters
