// SPDX-License-Identifier: Apache-2.0
#include "ranks/keyed_hash.hpp"

#include <bit>

namespace sonde::ranks {
namespace {

struct SipState {
    std::uint64_t v0, v1, v2, v3;

    explicit SipState(const HashKey& key)
        : v0(key[0] ^ 0x736f6d6570736575ULL),
          v1(key[1] ^ 0x646f72616e646f6dULL),
          v2(key[0] ^ 0x6c7967656e657261ULL),
          v3(key[1] ^ 0x7465646279746573ULL) {}

    void run_rounds(int rounds) {
        for (int round = 0; round < rounds; ++round) {
            v0 += v1;
            v2 += v3;
            v1 = std::rotl(v1, 13) ^ v0;
            v3 = std::rotl(v3, 16) ^ v2;
            v0 = std::rotl(v0, 32);
            v2 += v1;
            v0 += v3;
            v1 = std::rotl(v1, 17) ^ v2;
            v3 = std::rotl(v3, 21) ^ v0;
            v2 = std::rotl(v2, 32);
        }
    }

    void absorb(std::uint64_t word) {
        v3 ^= word;
        run_rounds(2);
        v0 ^= word;
    }
};

std::uint64_t load_little_endian(const std::byte* data, std::size_t bytes) {
    std::uint64_t word = 0;
    for (std::size_t index = 0; index < bytes; ++index) {
        word |= static_cast<std::uint64_t>(data[index]) << (8 * index);
    }
    return word;
}

}  // namespace

std::uint64_t compute_keyed_hash(const HashKey& key, const std::byte* data, std::size_t bytes) {
    SipState state(key);
    const std::size_t tail = bytes % sizeof(std::uint64_t);
    for (const std::byte* end = data + bytes - tail; data != end; data += sizeof(std::uint64_t)) {
        state.absorb(load_little_endian(data, sizeof(std::uint64_t)));
    }
    state.absorb(static_cast<std::uint64_t>(bytes) << 56U | load_little_endian(data, tail));
    state.v2 ^= 0xff;
    state.run_rounds(4);
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace sonde::ranks
