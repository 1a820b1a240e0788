// SPDX-License-Identifier: Apache-2.0
// One number for a name, by which small tables find it again. Two names may share one: who keeps something by it may
// lose by that, but must not be wrong.
#pragma once

#include <cstdint>

namespace sonde::system {

/// FNV-1a, 64 bits.
inline std::uint64_t hash_of(const char* name) noexcept {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (; *name != 0; ++name) {
        hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001B3ULL;
    }
    return hash;
}

}  // namespace sonde::system
