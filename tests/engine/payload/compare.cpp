// SPDX-License-Identifier: Apache-2.0
// Verification: each kind of damage is found, placed and called by its name.
#include "payload/compare.hpp"

#include "content.hpp"

#include <doctest/doctest.h>

using sonde::payload::compare;
using sonde::payload::granule_bytes;
using sonde::payload::Mismatch;
using sonde::plan::Payload;
using sonde::plan::PayloadKind;
using sonde::tests::Content;
using MismatchKind = sonde::payload::Mismatch::MismatchKind;

namespace {

constexpr std::uint64_t file = 3;
constexpr std::uint64_t generation = 4;

/// A read of [offset, offset + length) that returns `bytes`.
std::optional<Mismatch> judge(Content& content, const std::vector<std::byte>& bytes, std::uint64_t offset,
                              std::uint64_t got = ~0ULL) {
    content.image().set_origin({file, generation});
    return compare(content.image(), bytes.data(), offset, bytes.size(), std::min<std::uint64_t>(got, bytes.size()));
}

struct Read {
    std::uint64_t offset, length;
};
/// Aligned blocks, records that begin and end inside granules, and one smaller than a granule.
constexpr Read reads[] = {
    {8 * granule_bytes, 4 * granule_bytes}, {70'000, 10'000}, {70'000, 30'000}, {123, 50'001}, {81'000, 900}};

constexpr Payload plain{PayloadKind::stamped, 1, 0.0, 0.0};

}  // namespace

TEST_CASE("right content passes") {
    for (const PayloadKind kind : {PayloadKind::stamped, PayloadKind::random, PayloadKind::zero}) {
        for (const double duplicates : {0.0, 0.6}) {
            Content content({kind, 1, 0.3, duplicates});
            for (const Read& read : reads) {
                CHECK_FALSE(judge(content, content.bytes(file, generation, read.offset, read.length), read.offset));
            }
        }
    }
}

TEST_CASE("any single flipped bit is located at its byte") {
    Content content(plain);
    for (const Read& read : reads) {
        auto bytes = content.bytes(file, generation, read.offset, read.length);
        for (std::uint64_t index = 0; index < read.length; index += 97) {
            bytes[index] ^= std::byte{0x10};
            const auto wrong = judge(content, bytes, read.offset);
            REQUIRE(wrong);
            REQUIRE(wrong->offset == read.offset + index);
            REQUIRE(wrong->bytes == 1);
            bytes[index] ^= std::byte{0x10};
        }
    }
}

TEST_CASE("a flipped bit outside the stamp is called changed bytes") {
    Content content(plain);
    auto bytes = content.bytes(file, generation, 0, 2 * granule_bytes);
    bytes[granule_bytes + 1000] ^= std::byte{1};
    const auto wrong = judge(content, bytes, 0);
    REQUIRE(wrong);
    CHECK(wrong->kind == MismatchKind::changed);
    CHECK(wrong->describe_mismatch.find("byte 1000 of the 4 KiB block") != std::string::npos);
}

TEST_CASE("displaced block is reported with its origin") {
    Content content(plain);
    for (const Read& read : reads) {
        const std::uint64_t from = read.offset + 40 * granule_bytes;
        const auto wrong = judge(content, content.bytes(file, generation, from, read.length), read.offset);
        REQUIRE(wrong);
        CAPTURE(read.length);
        if (read.length > 2 * granule_bytes) {  // a stamp is visible
            CHECK(wrong->kind == MismatchKind::displaced);
            CHECK(wrong->describe_mismatch.find("of the same file") != std::string::npos);
        }
        CHECK(wrong->offset < read.offset + 64);
    }
    const auto wrong =
        judge(content, content.bytes(file, generation, 8 * granule_bytes, granule_bytes), 5 * granule_bytes);
    CHECK(wrong->describe_mismatch == "holds offset 32768 of the same file, generation 4");
}

TEST_CASE("block of another file is foreign and reported with the file") {
    Content content(plain);
    for (const Read& read : reads) {
        const auto wrong = judge(content, content.bytes(9, generation, read.offset, read.length), read.offset);
        REQUIRE(wrong);
        CAPTURE(read.length);
        if (read.length > 2 * granule_bytes) {
            CHECK(wrong->kind == MismatchKind::foreign);
            CHECK(wrong->describe_mismatch.find("of file number 9") != std::string::npos);
        }
    }
}

TEST_CASE("an older version is stale, also when no stamp is visible") {
    Content content(plain);
    for (const Read& read : reads) {
        const auto wrong = judge(content, content.bytes(file, 2, read.offset, read.length), read.offset);
        REQUIRE(wrong);
        CAPTURE(read.offset);
        CAPTURE(read.length);
        CHECK(wrong->kind == MismatchKind::stale);
        CHECK(wrong->describe_mismatch.find("generation 2") != std::string::npos);
    }
}

TEST_CASE("granule continued by an older version is torn") {
    Content content(plain);
    const auto older = content.bytes(file, generation - 1, 0, 4 * granule_bytes);
    for (const std::size_t cut : {512U, 1024U, 2048U, 3584U, 4032U}) {
        auto bytes = content.bytes(file, generation, 0, 4 * granule_bytes);
        std::copy(older.begin() + static_cast<std::ptrdiff_t>(granule_bytes + cut), older.begin() + 2 * granule_bytes,
                  bytes.begin() + static_cast<std::ptrdiff_t>(granule_bytes + cut));
        const auto wrong = judge(content, bytes, 0);
        REQUIRE(wrong);
        CAPTURE(cut);
        CHECK(wrong->kind == MismatchKind::torn);
        CHECK(wrong->offset >= granule_bytes + cut);
        CHECK(wrong->offset < granule_bytes + cut + 16);
    }
}

TEST_CASE("torn block with an old head is stale there") {
    // Sectors reach the medium in any order: the new half may be the second.
    Content content(plain);
    auto bytes = content.bytes(file, generation, 0, granule_bytes);
    const auto older = content.bytes(file, generation - 1, 0, granule_bytes);
    std::copy(older.begin(), older.begin() + 2048, bytes.begin());
    const auto wrong = judge(content, bytes, 0);
    REQUIRE(wrong);
    CHECK((wrong->kind == MismatchKind::stale || wrong->kind == MismatchKind::torn));
    CHECK(wrong->offset < 32);
}

TEST_CASE("zeros are classified as zeros in full and partial blocks") {
    Content content(plain);
    for (const Read& read : reads) {
        const auto wrong = judge(content, std::vector<std::byte>(read.length), read.offset);
        REQUIRE(wrong);
        CHECK(wrong->kind == MismatchKind::zeros);
    }
    auto bytes = content.bytes(file, generation, 0, 4 * granule_bytes);
    std::fill(bytes.begin() + 2 * granule_bytes, bytes.begin() + 3 * granule_bytes, std::byte{0});
    const auto wrong = judge(content, bytes, 0);
    REQUIRE(wrong);
    CHECK(wrong->kind == MismatchKind::zeros);
    CHECK(wrong->offset == 2 * granule_bytes);
}

TEST_CASE("short read reports where the file ends") {
    Content content(plain);
    for (const Read& read : reads) {
        const auto bytes = content.bytes(file, generation, read.offset, read.length);
        for (const std::uint64_t got : {std::uint64_t{0}, std::uint64_t{1}, read.length / 2, read.length - 1}) {
            const auto wrong = judge(content, bytes, read.offset, got);
            REQUIRE(wrong);
            CHECK(wrong->kind == MismatchKind::truncated);
            CHECK(wrong->offset == read.offset + got);
            CHECK(wrong->bytes == read.length - got);
        }
    }
}

TEST_CASE("damage before the end of a truncated file is reported first") {
    Content content(plain);
    auto bytes = content.bytes(file, generation, 0, 4 * granule_bytes);
    bytes[100] ^= std::byte{1};
    const auto wrong = judge(content, bytes, 0, 2 * granule_bytes);
    REQUIRE(wrong);
    CHECK(wrong->kind == MismatchKind::changed);
    CHECK(wrong->offset == 100);
}

TEST_CASE("foreign bytes are reported as not written by this run") {
    Content content(plain);
    const auto wrong = judge(content, std::vector<std::byte>(2 * granule_bytes, std::byte{0x61}), 0);
    REQUIRE(wrong);
    CHECK(wrong->kind == MismatchKind::changed);
    CHECK(wrong->describe_mismatch == "holds bytes that this run did not write");
    Content stranger({PayloadKind::stamped, 2, 0.0, 0.0});  // another run: another seed
    CHECK(judge(content, stranger.bytes(file, generation, 0, granule_bytes), 0)->describe_mismatch ==
          "holds bytes that this run did not write");
}

TEST_CASE("damage is detected in half-compressible content") {
    for (const PayloadKind kind : {PayloadKind::stamped, PayloadKind::random}) {
        Content content({kind, 1, 0.5, 0.0});
        for (const Read& read : reads) {
            CHECK(judge(content, content.bytes(9, generation, read.offset, read.length), read.offset));
            CHECK(
                judge(content, content.bytes(file, generation, read.offset + granule_bytes, read.length), read.offset));
            CHECK(judge(content, content.bytes(file, generation - 1, read.offset, read.length), read.offset));
        }
    }
}
