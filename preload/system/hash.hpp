// SPDX-License-Identifier: Apache-2.0
// One number for a name, by which small tables find it again. Two names may share one: who keeps something by it may
// lose by that, but must not be wrong.
#pragma once

#include <cstdint>
#include <cstring>

namespace sonde::system {

/// Eight bytes at a time: names are looked up at each opening. Good in the upper half, which is what tables should use.
inline std::uint64_t compute_hash(const char* name) noexcept {
    constexpr std::uint64_t factor = 0x9E3779B97F4A7C15ULL;
    std::size_t remaining = std::strlen(name);
    std::uint64_t hash = remaining * factor;
    while (remaining > 0) {
        const std::size_t part = remaining < sizeof(hash) ? remaining : sizeof(hash);
        std::uint64_t word = 0;
        std::memcpy(&word, name, part);
        hash = (hash ^ word) * factor;
        hash ^= hash >> 29U;
        name += part;
        remaining -= part;
    }
    return hash;
}

}  // namespace sonde::system
