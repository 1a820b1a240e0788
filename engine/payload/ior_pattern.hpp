// SPDX-License-Identifier: Apache-2.0
// The content that IOR 4.1 writes, byte for byte, so that either tool can verify what the other wrote. It depends on a
// signature (IOR's -G), on the task that wrote it, on the length of a transfer and, except for timestamps, on its
// place.
//
// A transfer is 64-bit little-endian words w[0], w[1], …; r = task, G = signature, o = offset of the transfer:
//     timestamp        w[i] = r * 2^32 | G + i                            (no place: swapped transfers go unnoticed)
//     offset           the same, but w[512 k] = (o mod 2^32) * (k + 1) mod 2^32 | r * 2^32
//     incompressible   the same marks; all other words are one number drawn from rand_r(G + r), so it does compress
//     random           w[i] = x[i] with x[i] = x[i-1] * 0x9e37fffffffc0001 >> 3 from rand_r(G + r + o)
// Bytes after the last whole word are their own index in the transfer.
#pragma once

#include "plan/plan.hpp"

#include <cstddef>
#include <cstdint>

namespace sonde::payload {

/// The payload kind and the identity of the writer of transfers.
struct IorPacket {
    plan::PayloadKind kind = plan::PayloadKind::ior_timestamp;
    std::uint32_t signature = 0;
    std::uint32_t writer = 0;
};

/// True for IOR's kinds: what is right can be computed without knowing which phase wrote it.
constexpr bool is_ior_payload(plan::PayloadKind kind) {
    return kind == plan::PayloadKind::ior_timestamp || kind == plan::PayloadKind::ior_offset ||
           kind == plan::PayloadKind::ior_incompressible || kind == plan::PayloadKind::ior_random;
}

/// Writes the part of the content that all transfers of a writer share. `length` in bytes.
void fill_packet(const IorPacket& packet, std::byte* transfer, std::uint64_t length) noexcept;
/// Writes the part that depends on the file offset of the transfer; fill_packet() has prepared `transfer`.
void set_packet_offset(const IorPacket& packet, std::byte* transfer, std::uint64_t length,
                       std::uint64_t offset) noexcept;

}  // namespace sonde::payload
