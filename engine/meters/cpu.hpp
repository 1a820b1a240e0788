// SPDX-License-Identifier: Apache-2.0
// CPU time of the calling thread.
#pragma once

#include <cstdint>

namespace sonde::meters {

struct CpuTime {
    std::uint64_t user_ns = 0, system_ns = 0;
};

/// getrusage(RUSAGE_THREAD); the kernel's resolution is 1 us, on tick-based accounting 1–4 ms.
CpuTime thread_cpu();

}  // namespace sonde::meters
