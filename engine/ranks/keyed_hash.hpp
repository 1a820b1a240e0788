// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4: a keyed hash that nobody without the key can compute or predict. Jean-Philippe Aumasson, Daniel J.
// Bernstein: "SipHash: a fast short-input PRF", INDOCRYPT 2012.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sonde::ranks {

/// 128 bits, as two words that the reference stores as little-endian bytes.
using HashKey = std::array<std::uint64_t, 2>;

std::uint64_t compute_keyed_hash(const HashKey& key, const std::byte* data, std::size_t bytes);

}  // namespace sonde::ranks
