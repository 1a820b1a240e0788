// SPDX-License-Identifier: Apache-2.0
// IOR's content against words that IOR itself wrote (release 4.1, signature 7, second of two tasks, transfers of 8200
// B), and what verification makes of it.
#include "payload/ior_pattern.hpp"
#include "payload/compare.hpp"
#include "payload/payload.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

using namespace sonde;
using payload::IorPacket;
using plan::PayloadKind;

namespace {

constexpr std::uint64_t length = 8200;
constexpr std::uint64_t offset = 41000;

std::vector<std::byte> transfer_of(PayloadKind kind) {
    std::vector<std::byte> bytes(length);
    const IorPacket packet{kind, 7, 1};
    payload::fill_packet(packet, bytes.data(), length);
    payload::set_packet_offset(packet, bytes.data(), length, offset);
    return bytes;
}

std::uint64_t read_word(const std::vector<std::byte>& bytes, std::size_t index) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + 8 * index, 8);
    return value;
}

struct ReferenceContent {
    PayloadKind kind;
    std::uint64_t first, second, at_512, last;
};

}  // namespace

TEST_CASE("transfer content equals the content that IOR writes") {
    const ReferenceContent examples[] = {
        {PayloadKind::ior_timestamp, 0x100000007ULL, 0x100000008ULL, 0x100000207ULL, 0x100000407ULL},
        {PayloadKind::ior_offset, 0x10000a028ULL, 0x100000008ULL, 0x100014050ULL, 0x10001e078ULL},
        {PayloadKind::ior_incompressible, 0x10000a028ULL, 0x6323c2f2699ad101ULL, 0x100014050ULL, 0x10001e078ULL},
        {PayloadKind::ior_random, 0x19b7ce6258236d11ULL, 0x73ccdba947beda2ULL, 0x10dc24993e43f22fULL,
         0xb4c3201ee6718f0ULL},
    };
    for (const ReferenceContent& example : examples) {
        CAPTURE(static_cast<int>(example.kind));
        const std::vector<std::byte> bytes = transfer_of(example.kind);
        CHECK(read_word(bytes, 0) == example.first);
        CHECK(read_word(bytes, 1) == example.second);
        CHECK(read_word(bytes, 512) == example.at_512);
        CHECK(read_word(bytes, 1024) == example.last);
    }
}

TEST_CASE("IOR signature above 31 bits is negative, tail is its index") {
    std::vector<std::byte> bytes(21);
    payload::fill_packet({PayloadKind::ior_timestamp, 0xffffffffU, 3}, bytes.data(), bytes.size());
    CHECK(read_word(bytes, 0) == 0xffffffffffffffffULL);
    CHECK(read_word(bytes, 1) == (3ULL << 32U));
    for (std::size_t i = 16; i < bytes.size(); ++i) {
        CHECK(bytes[i] == static_cast<std::byte>(i));
    }
}

TEST_CASE("IOR content verifies without version and names other tasks") {
    plan::Payload settings;
    settings.kind = PayloadKind::ior_offset;
    settings.seed = 7;
    const payload::PayloadBase base(settings, payload::choose_payload_period(settings, length));
    std::vector<std::byte> memory(payload::PayloadImage::memory_for(base.period(), length));
    payload::PayloadImage image(base, memory.data(), length);
    std::vector<std::byte> bytes = transfer_of(PayloadKind::ior_offset);

    image.set_origin({0, 9, 1});
    CHECK(!payload::compare(image, bytes.data(), offset, length, length));
    image.set_origin({5, 0, 2});
    const auto foreign = payload::compare(image, bytes.data(), offset, length, length);
    REQUIRE(foreign);
    CHECK(foreign->offset == offset + 4);
    image.set_origin({0, 1, 1});
    CHECK(payload::compare(image, bytes.data(), offset + length, length, length));
    bytes[8199] ^= std::byte{1};
    const auto changed = payload::compare(image, bytes.data(), offset, length, length);
    REQUIRE(changed);
    CHECK(changed->bytes == 1);
    const auto cut = payload::compare(image, bytes.data(), offset, length, 4096);
    REQUIRE(cut);
    CHECK(cut->kind == payload::Mismatch::MismatchKind::truncated);
}
