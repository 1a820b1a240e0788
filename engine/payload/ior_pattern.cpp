// SPDX-License-Identifier: Apache-2.0
#include "payload/ior_pattern.hpp"

#include <cstdlib>
#include <cstring>

namespace sonde::payload {
namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);
constexpr std::uint64_t words_per_mark = 512;

void store_word(std::byte* transfer, std::uint64_t index, std::uint64_t value) noexcept {
    std::memcpy(transfer + index * word_bytes, &value, word_bytes);
}

std::uint64_t writer_bits(const IorPacket& packet) noexcept {
    return static_cast<std::uint64_t>(packet.writer) << 32U;
}

/// The C library's small generator: files must equal those of a program that uses it.
std::uint64_t draw_number(unsigned& seed) noexcept {
    return static_cast<std::uint64_t>(rand_r(&seed));
}

}  // namespace

void fill_packet(const IorPacket& packet, std::byte* transfer, std::uint64_t length) noexcept {
    const std::uint64_t count = length / word_bytes;
    // IOR adds its signature as a signed 32-bit number.
    const auto signature =
        static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(packet.signature)));
    unsigned seed = packet.signature + packet.writer;
    const std::uint64_t high = draw_number(seed) << 32U;
    const std::uint64_t constant = high | draw_number(seed);
    for (std::uint64_t i = 0; i < count; ++i) {
        store_word(
            transfer, i,
            packet.kind == plan::PayloadKind::ior_incompressible ? constant : (writer_bits(packet) | (signature + i)));
    }
    for (std::uint64_t i = count * word_bytes; i < length; ++i) {
        transfer[i] = static_cast<std::byte>(i);
    }
}

void set_packet_offset(const IorPacket& packet, std::byte* transfer, std::uint64_t length,
                       std::uint64_t offset) noexcept {
    const std::uint64_t count = length / word_bytes;
    switch (packet.kind) {
        case plan::PayloadKind::ior_offset:
        case plan::PayloadKind::ior_incompressible: {
            std::uint32_t multiple = 0;
            for (std::uint64_t i = 0; i < count; i += words_per_mark) {
                multiple += static_cast<std::uint32_t>(offset);
                store_word(transfer, i, writer_bits(packet) | multiple);
            }
            return;
        }
        case plan::PayloadKind::ior_random: {
            constexpr std::uint64_t factor = 0x9e37fffffffc0001ULL;
            unsigned seed = packet.signature + packet.writer + static_cast<std::uint32_t>(offset);
            std::uint64_t state = draw_number(seed);
            for (std::uint64_t i = 0; i < count; ++i) {
                state = (state * factor) >> 3U;
                store_word(transfer, i, state);
            }
            return;
        }
        default:
            return;
    }
}

}  // namespace sonde::payload
