// SPDX-License-Identifier: Apache-2.0
// Written content is unique, reproducible, and as compressible and repetitive as requested.
#include "content.hpp"

#include <doctest/doctest.h>
#include <array>
#include <cmath>
#include <set>
#include <string>

using sonde::payload::granule_bytes;
using sonde::plan::Payload;
using sonde::plan::PayloadKind;
using sonde::tests::Content;

namespace {

using Bytes = std::vector<std::byte>;

std::vector<std::string> granules(const Bytes& bytes) {
    std::vector<std::string> list;
    for (std::size_t position = 0; position + granule_bytes <= bytes.size(); position += granule_bytes) {
        list.emplace_back(reinterpret_cast<const char*>(bytes.data() + position), granule_bytes);
    }
    return list;
}

std::size_t count_distinct(const std::vector<std::string>& list) {
    return std::set<std::string>(list.begin(), list.end()).size();
}

/// Share of equal bytes at equal places.
double share_of_equal_bytes(const Bytes& a, const Bytes& b) {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        equal += a[i] == b[i] ? 1U : 0U;
    }
    return static_cast<double>(equal) / static_cast<double>(a.size());
}

/// Bits a byte that a perfect order-0 coder needs.
double entropy(const Bytes& bytes) {
    std::array<double, 256> counts{};
    for (const std::byte b : bytes) {
        counts.at(std::to_integer<std::size_t>(b)) += 1;
    }
    double bits = 0;
    for (const double count : counts) {
        if (count > 0) {
            const double p = count / static_cast<double>(bytes.size());
            bits -= p * std::log2(p);
        }
    }
    return bits;
}

/// Output bytes of a compressor that only replaces each run of zeros by one token.
double without_zero_runs(const Bytes& bytes) {
    std::size_t remaining = 0;
    for (std::size_t i = 0; i < bytes.size();) {
        std::size_t run = 0;
        while (i + run < bytes.size() && bytes[i + run] == std::byte{0}) {
            ++run;
        }
        remaining += run >= 4 ? 3 : run;
        i += run;
        if (run == 0) {
            ++remaining;
            ++i;
        }
    }
    return static_cast<double>(remaining) / static_cast<double>(bytes.size());
}

constexpr std::uint64_t mib = 1U << 20U;

}  // namespace

TEST_CASE("granules differ within files, between files and versions") {
    for (const PayloadKind kind : {PayloadKind::stamped, PayloadKind::random}) {
        Content content({kind, 7, 0.0, 0.0});
        std::vector<std::string> all;
        for (std::uint64_t file = 0; file < 3; ++file) {
            for (std::uint64_t generation = 1; generation < 4; ++generation) {
                const auto some = granules(content.bytes(file, generation, 0, mib));
                all.insert(all.end(), some.begin(), some.end());
            }
        }
        CHECK(count_distinct(all) == 9 * mib / granule_bytes);
    }
}

TEST_CASE("block does not repeat within a compression unit") {
    // Without their stamps, granules still differ over the whole period of 256 KiB.
    Content content({PayloadKind::stamped, 7, 0.0, 0.0});
    const sonde::payload::PayloadBase base({PayloadKind::stamped, 7, 0.0, 0.0}, 256U << 10U);
    std::vector<std::string> bodies = granules(content.bytes(0, 1, 0, 256U << 10U));
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        bodies[i].replace(base.stamp_begin(i * granule_bytes, {0, 1}), sonde::payload::stamp_bytes, 32, 's');
    }
    CHECK(count_distinct(bodies) == 64);
    CHECK(entropy(content.bytes(0, 1, 0, mib)) > 7.99);
}

TEST_CASE("successive generations differ in every byte range") {
    for (const PayloadKind kind : {PayloadKind::stamped, PayloadKind::random}) {
        Content content({kind, 3, 0.0, 0.0});
        for (std::uint64_t generation = 1; generation < 20; ++generation) {
            const Bytes older = content.bytes(5, generation, 0, mib);
            const Bytes newer = content.bytes(5, generation + 1, 0, mib);
            CHECK(share_of_equal_bytes(older, newer) <
                  0.015);  // by chance 1 of 256 bytes, and most of 32 bytes of stamp
            for (std::size_t position = 0; position < mib; position += 512) {
                REQUIRE(std::memcmp(older.data() + position, newer.data() + position, 512) != 0);
            }
        }
    }
}

TEST_CASE("content depends on seed, file, generation and offset only") {
    for (const PayloadKind kind : {PayloadKind::stamped, PayloadKind::random}) {
        for (const double duplicates : {0.0, 0.5}) {
            Content one({kind, 9, 0.25, duplicates});
            Content other({kind, 9, 0.25, duplicates});
            const Bytes expected = one.bytes(2, 1, 0, mib);
            for (const std::uint64_t step : {512ULL, 4096ULL, 10'000ULL, 65'537ULL}) {
                CAPTURE(step);
                CHECK(other.bytes(2, 1, 0, mib, step) == expected);
            }
            const Bytes middle = other.bytes(2, 1, 12'345, 54'321);
            CHECK(std::equal(middle.begin(), middle.end(), expected.begin() + 12'345));
            Content reseeded({kind, 10, 0.25, duplicates});
            CHECK(reseeded.bytes(2, 1, 0, mib) != expected);
        }
    }
}

TEST_CASE("stamp holds magic, file, offset, generation and moves") {
    Content content({PayloadKind::stamped, 77, 0.0, 0.0});
    sonde::payload::PayloadBase base({PayloadKind::stamped, 77, 0.0, 0.0}, 256U << 10U);
    std::set<std::uint64_t> places;
    for (std::uint64_t position = 0; position < 64 * granule_bytes; position += granule_bytes) {
        const Bytes bytes = content.bytes(6, 3, position, granule_bytes);
        const std::uint64_t stamp_begin = base.stamp_begin(position, {6, 3});
        places.insert(stamp_begin);
        std::uint64_t stamp[4] = {};
        std::memcpy(stamp, bytes.data() + stamp_begin, sizeof stamp);
        CHECK(stamp[0] == (sonde::payload::stamp_magic ^ 77U));
        CHECK(stamp[1] == 6);
        CHECK(stamp[2] == position);
        CHECK(stamp[3] == 3);
        CHECK(base.make_stamped_content(position, granule_bytes, {6, 3}) == bytes);
    }
    CHECK(places.size() == 64);
    CHECK(base.make_stamped_content(5000, 9000, {6, 3}) == content.bytes(6, 3, 5000, 9000));
}

TEST_CASE("compressible is the fraction that compression removes") {
    for (const PayloadKind kind : {PayloadKind::stamped, PayloadKind::random}) {
        for (const double dial : {0.0, 0.25, 0.5, 0.75, 0.9}) {
            Content content({kind, 5, dial, 0.0});
            const Bytes bytes = content.bytes(1, 1, 0, mib);
            CAPTURE(dial);
            // One token for each 64 bytes is what the grain costs a run coder.
            const double token = dial > 0 ? 3.0 / 64 : 0;
            CHECK(without_zero_runs(bytes) == doctest::Approx(1 - dial + token).epsilon(0.05));
            std::size_t zeros = 0;
            for (const std::byte b : bytes) {
                zeros += b == std::byte{0} ? 1U : 0U;
            }
            CHECK(static_cast<double>(zeros) / mib == doctest::Approx(dial + (1 - dial) / 256).epsilon(0.03));
        }
    }
}

TEST_CASE("every piece of a compressible file is compressible") {
    Content content({PayloadKind::stamped, 5, 0.5, 0.0});
    const Bytes bytes = content.bytes(1, 1, 0, mib);
    for (std::size_t position = 0; position < mib; position += 8192) {
        const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(position),
                          bytes.begin() + static_cast<std::ptrdiff_t>(position + 8192));
        CHECK(without_zero_runs(piece) == doctest::Approx(0.5 + 3.0 / 64).epsilon(0.05));
    }
}

TEST_CASE("the duplicates dial is the share that deduplication finds") {
    for (const PayloadKind kind : {PayloadKind::stamped, PayloadKind::random}) {
        for (const double dial : {0.0, 0.3, 0.7, 1.0}) {
            Content content({kind, 5, 0.0, dial});
            std::vector<std::string> all;
            for (std::uint64_t file = 0; file < 8; ++file) {
                const auto some = granules(content.bytes(file, 1, 0, 2 * mib, mib));
                all.insert(all.end(), some.begin(), some.end());
            }
            const double unique = static_cast<double>(count_distinct(all)) / static_cast<double>(all.size());
            CAPTURE(dial);
            // At most one granule of each kind of duplicate is kept: 64 of 4096.
            CHECK(unique >= 1 - dial - 0.03);
            CHECK(unique <= 1 - dial + 0.03 + 64.0 / 4096);
        }
    }
}

TEST_CASE("zeros are zeros") {
    Content content({PayloadKind::zero, 5, 0.0, 0.0});
    for (const std::byte b : content.bytes(3, 2, 1000, 100'000)) {
        REQUIRE(b == std::byte{0});
    }
}

TEST_CASE("buffers are aligned like their offset for direct I/O") {
    Content content({PayloadKind::stamped, 5, 0.0, 0.0});
    content.image().set_origin({4, 2});
    for (const std::uint64_t offset : {0ULL, 512ULL, 4096ULL, 1'000'448ULL, 123ULL}) {
        const auto address = reinterpret_cast<std::uintptr_t>(content.image().content_at(offset, 1U << 20U));
        CHECK(address % granule_bytes == offset % granule_bytes);
    }
}

TEST_CASE("base period follows the transfer unless the plan sets it") {
    const Payload settings;
    CHECK(sonde::payload::choose_payload_period(settings, 4096) == 256U << 10U);
    CHECK(sonde::payload::choose_payload_period(settings, (256U << 10U) - 1) == 256U << 10U);
    CHECK(sonde::payload::choose_payload_period(settings, 256U << 10U) == 1U << 20U);
    CHECK(sonde::payload::choose_payload_period(settings, 1U << 30U) == 1U << 20U);
    Payload chosen;
    chosen.period = 16U << 20U;
    CHECK(sonde::payload::choose_payload_period(chosen, 4096) == 16U << 20U);
}

TEST_CASE("content does not depend on the sizes of calls") {
    for (const std::uint64_t period : {4096ULL, 32'768ULL, 131'072ULL, 524'288ULL}) {
        Content one({PayloadKind::stamped, 9, 0.0, 0.0, period}, mib, period);
        Content other({PayloadKind::stamped, 9, 0.0, 0.0, period}, mib, period);
        const sonde::payload::PayloadBase base({PayloadKind::stamped, 9, 0.0, 0.0, period}, period);
        CAPTURE(period);
        for (std::uint64_t generation = 1; generation < 4; ++generation) {
            const Bytes expected = one.bytes(2, generation, 0, mib);
            CHECK(expected == base.make_stamped_content(0, mib, {2, generation}));
            for (const std::uint64_t step : {4096ULL, 10'000ULL, 65'536ULL, 1'000'000ULL}) {
                CHECK(other.bytes(2, generation, 0, mib, step) == expected);
            }
            CHECK(count_distinct(granules(expected)) == mib / granule_bytes);
        }
    }
}

TEST_CASE("content from the shared base equals that of a separate base") {
    using sonde::payload::PayloadImage;
    for (const PayloadKind kind : {PayloadKind::stamped, PayloadKind::random, PayloadKind::zero}) {
        for (const double duplicates : {0.0, 0.5}) {
            Payload settings;
            settings.kind = kind;
            settings.duplicates = kind == PayloadKind::zero ? 0 : duplicates;
            constexpr std::uint64_t period = 4 * granule_bytes, longest = 20'000;  // more than one period
            const sonde::payload::PayloadBase base(settings, period);
            std::vector<std::byte> mine(PayloadImage::memory_for(period, longest));
            std::vector<std::byte> small(
                PayloadImage::memory_for(period, longest, PayloadImage::BaseStorage::one_transfer));
            CHECK(small.size() + period == mine.size());
            PayloadImage own(base, mine.data(), longest);
            PayloadImage copying(base, small.data(), longest, PayloadImage::BaseStorage::one_transfer);
            for (const std::uint64_t offset : {0ULL, 4096ULL, 100ULL, 4095ULL, 123'457ULL}) {
                for (const std::uint64_t length : {1ULL, 4096ULL, 5000ULL, 16'384ULL, 20'000ULL}) {
                    for (std::uint64_t generation = 1; generation < 4; ++generation) {
                        own.set_origin({7, generation});
                        copying.set_origin({7, generation});
                        const std::byte* expected = own.content_at(offset, length);
                        const std::byte* bytes = copying.content_at(offset, length);
                        CAPTURE(static_cast<int>(kind));
                        CAPTURE(offset);
                        CAPTURE(length);
                        REQUIRE(Bytes(bytes, bytes + length) == Bytes(expected, expected + length));
                    }
                }
            }
        }
    }
}

TEST_CASE("tasks have separate bases until a node uses 64 MiB") {
    using sonde::payload::PayloadImage;
    constexpr std::uint64_t period = 256U << 10U;
    CHECK(PayloadImage::choose_base_storage(period, 4096, 64) == PayloadImage::BaseStorage::whole_period);
    CHECK(PayloadImage::choose_base_storage(period, 4096, 4096) == PayloadImage::BaseStorage::one_transfer);
    CHECK(PayloadImage::choose_base_storage(1U << 20U, 1U << 20U, 4096) ==
          PayloadImage::BaseStorage::whole_period);  // a copy would be felt
    const std::uint64_t image = PayloadImage::memory_for(period, 4096);
    CHECK(PayloadImage::choose_base_storage(period, 4096, (64U << 20U) / image) ==
          PayloadImage::BaseStorage::whole_period);
    CHECK(PayloadImage::choose_base_storage(period, 4096, (64U << 20U) / image + 1) ==
          PayloadImage::BaseStorage::one_transfer);
}

TEST_CASE("premarked granules equal individually created stamps") {
    using sonde::payload::PayloadImage;
    for (const std::uint64_t period : {4096ULL, 32'768ULL, 262'144ULL}) {
        constexpr std::uint64_t longest = 20'000;
        const sonde::payload::PayloadBase base({PayloadKind::stamped, 9, 0.0, 0.0, period}, period);
        std::vector<std::byte> memory(PayloadImage::memory_for(period, longest));
        PayloadImage image(base, memory.data(), longest);
        for (const sonde::payload::Origin origin : {sonde::payload::Origin{7, 1}, {7, 2}, {8, 2}, {7, 1}}) {
            image.set_origin(origin);
            CHECK(!image.stamp_all_granules(memory.size() - 1));  // too little to be worth it
            REQUIRE(image.stamp_all_granules(memory.size()));
            CHECK(image.stamp_all_granules(1));  // it is done already
            image.set_origin(origin);
            CHECK(image.stamp_all_granules(1));  // and stays, as long as nothing else is to be written
            const auto pen = image.stamp_writer<true>();
            for (std::uint64_t offset = 0; offset < 3 * period; offset += period == 4096 ? 500 : 4096) {
                for (const std::uint64_t length : {1ULL, 4096ULL, 5000ULL, 20'000ULL}) {
                    CAPTURE(period);
                    CAPTURE(offset);
                    CAPTURE(length);
                    const std::byte* bytes = pen.buffer_at(offset + 100, length);
                    REQUIRE(Bytes(bytes, bytes + length) == base.make_stamped_content(offset + 100, length, origin));
                    bytes = image.content_at(offset, length);  // right again after other content
                    REQUIRE(Bytes(bytes, bytes + length) == base.make_stamped_content(offset, length, origin));
                }
            }
        }
    }
}

TEST_CASE("unchecked readers need no copy of the base") {
    using sonde::payload::PayloadImage;
    constexpr std::uint64_t period = 256U << 10U;
    const Payload settings{PayloadKind::stamped, 9, 0.0, 0.0};
    const sonde::payload::PayloadBase base(settings, period), other(settings, period);
    CHECK(base.memory_bytes() == 0);
    std::vector<std::byte> first(PayloadImage::memory_for(period, granule_bytes)), second(first.size());
    std::vector<std::byte> small(
        PayloadImage::memory_for(period, granule_bytes, PayloadImage::BaseStorage::one_transfer));
    PayloadImage(base, first.data(), granule_bytes);
    CHECK(base.memory_bytes() == 0);
    PayloadImage(base, second.data(), granule_bytes);
    CHECK(base.memory_bytes() == period);
    CHECK(first == second);
    CHECK(std::equal(first.begin(), first.begin() + period, base.data()));
    CHECK(std::equal(first.begin() + period, first.end(), first.begin()));  // the next period begins
    PayloadImage(other, small.data(), granule_bytes, PayloadImage::BaseStorage::one_transfer);
    CHECK(other.memory_bytes() == period);  // transfers are copied from it
}
