// SPDX-License-Identifier: Apache-2.0
// Layouts in their binary form, built by hand after lustre_user.h, and which byte lies where by counting byte by byte.
#include "layouts/gluster.hpp"
#include "layouts/lustre.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using sonde::layouts::compute_bytes_by_target;
using sonde::layouts::find_targets_of_byte;
using sonde::layouts::LayoutComponent;
using sonde::layouts::parse_gluster_layout;
using sonde::layouts::parse_lustre_layout;
using sonde::layouts::StripeLayout;

namespace {

constexpr std::uint64_t kib64 = 65536;

void put(std::string& into, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) {
        into.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    }
}

/// lov_user_md_v1, or _v3 with a pool. `objects` = false: not chosen yet.
std::string plain_form(std::uint32_t stripe, const std::vector<std::uint32_t>& osts, const std::string& pool = "",
                       std::uint32_t pattern = 1, bool objects = true) {
    std::string out;
    put(out, pool.empty() ? 0x0BD10BD0 : 0x0BD30BD0, 4);
    put(out, pattern, 4);
    put(out, 0x1234, 8);  // the file's own number
    put(out, 0, 8);
    put(out, stripe, 4);
    put(out, osts.size(), 2);
    put(out, 0, 2);
    if (!pool.empty()) {
        std::string name = pool;
        name.resize(16, '\0');
        out += name;
    }
    for (const std::uint32_t ost : objects ? osts : std::vector<std::uint32_t>{}) {
        put(out, 77, 8);
        put(out, 0, 8);
        put(out, 0, 4);
        put(out, ost, 4);
    }
    return out;
}

struct Part {
    std::uint64_t start, end;
    std::string form;
    std::uint32_t flags = 0x10;
};

/// lov_comp_md_v1.
std::string composite_form(const std::vector<Part>& parts, std::uint16_t more_mirrors = 0) {
    std::string out;
    std::size_t position = 32 + 48 * parts.size();
    std::size_t size = position;
    for (const Part& part : parts) {
        size += part.form.size();
    }
    put(out, 0x0BD60BD0, 4);
    put(out, size, 4);
    put(out, 3, 4);
    put(out, 0, 2);
    put(out, parts.size(), 2);
    put(out, more_mirrors, 2);
    out.append(14, '\0');
    std::uint32_t id = 0;
    for (const Part& part : parts) {
        put(out, ++id, 4);
        put(out, part.flags, 4);
        put(out, part.start, 8);
        put(out, part.end, 8);
        put(out, position, 4);
        put(out, part.form.size(), 4);
        put(out, 0, 4);
        out.append(12, '\0');
        position += part.form.size();
    }
    for (const Part& part : parts) {
        out += part.form;
    }
    return out;
}

/// The truth by asking for every 4 KiB.
std::map<std::string, std::uint64_t> counted(const StripeLayout& layout, std::uint64_t size) {
    std::map<std::string, std::uint64_t> bytes_on;
    for (std::uint64_t position = 0; position < size; position += 4096) {
        for (const std::string& target : find_targets_of_byte(layout, position)) {
            bytes_on[target] += std::min<std::uint64_t>(4096, size - position);
        }
    }
    return bytes_on;
}

}  // namespace

TEST_CASE("plain layout gives stripe size, count and target per byte") {
    const StripeLayout layout = parse_lustre_layout(plain_form(kib64, {3, 0, 10}));
    REQUIRE(layout.components.size() == 1);
    CHECK(layout.kind == "lustre");
    CHECK(layout.components[0].stripe_bytes == kib64);
    CHECK(layout.components[0].requested_stripes == 3);
    CHECK(layout.components[0].targets == std::vector<std::string>{"OST0003", "OST0000", "OST000a"});
    CHECK(find_targets_of_byte(layout, 0) == std::vector<std::string>{"OST0003"});
    CHECK(find_targets_of_byte(layout, kib64 - 1) == std::vector<std::string>{"OST0003"});
    CHECK(find_targets_of_byte(layout, kib64) == std::vector<std::string>{"OST0000"});
    CHECK(find_targets_of_byte(layout, 5 * kib64) == std::vector<std::string>{"OST000a"});
    CHECK(compute_bytes_by_target(layout, 4 * kib64 + 100) ==
          std::map<std::string, std::uint64_t>{{"OST0003", 2 * kib64}, {"OST0000", kib64 + 100}, {"OST000a", kib64}});
    CHECK(compute_bytes_by_target(layout, 0).empty());
}

TEST_CASE("layout contains its pool, released file has no target") {
    const StripeLayout pooled = parse_lustre_layout(plain_form(kib64, {1}, "flash"));
    CHECK(pooled.components[0].pool == "flash");
    CHECK(pooled.components[0].targets == std::vector<std::string>{"OST0001"});
    const StripeLayout longest = parse_lustre_layout(plain_form(kib64, {1}, "sixteen-letters!"));
    CHECK(longest.components[0].pool == "sixteen-letters!");
    const StripeLayout released = parse_lustre_layout(plain_form(kib64, {}, "", 0x80000001));
    CHECK(released.components[0].pattern == LayoutComponent::Pattern::released);
    CHECK(compute_bytes_by_target(released, 10) == std::map<std::string, std::uint64_t>{{"?", 10}});
}

TEST_CASE("with overstriping a target holds several stripes of one file") {
    const StripeLayout layout = parse_lustre_layout(plain_form(kib64, {5, 6, 5, 6}, "", 0x201));
    CHECK(compute_bytes_by_target(layout, 3 * kib64) ==
          std::map<std::string, std::uint64_t>{{"OST0005", 2 * kib64}, {"OST0006", kib64}});
}

TEST_CASE("composite layout has metadata, single and four targets") {
    const StripeLayout layout =
        parse_lustre_layout(composite_form({{0, kib64, plain_form(kib64, {}, "", 0x100)},
                                            {kib64, 16 * kib64, plain_form(kib64, {2})},
                                            {16 * kib64, ~0ULL, plain_form(2 * kib64, {4, 5, 6, 7}, "disk")}}));
    REQUIRE(layout.components.size() == 3);
    CHECK(layout.mirror_count == 1);
    CHECK(find_targets_of_byte(layout, 10) == std::vector<std::string>{"MDT"});
    CHECK(find_targets_of_byte(layout, 2 * kib64) == std::vector<std::string>{"OST0002"});
    // the turn is counted from the beginning of the file: 16 stripes of 64 KiB are 8 of 128 KiB
    CHECK(find_targets_of_byte(layout, 16 * kib64) == std::vector<std::string>{"OST0004"});
    CHECK(find_targets_of_byte(layout, 18 * kib64) == std::vector<std::string>{"OST0005"});
    CHECK(compute_bytes_by_target(layout, 20 * kib64).at("MDT") == kib64);
    CHECK(compute_bytes_by_target(layout, 20 * kib64).at("OST0002") == 15 * kib64);
    CHECK(compute_bytes_by_target(layout, 20 * kib64) == counted(layout, 20 * kib64));
}

TEST_CASE("unwritten component has no targets yet") {
    const StripeLayout layout = parse_lustre_layout(composite_form(
        {{0, kib64, plain_form(kib64, {9})}, {kib64, ~0ULL, plain_form(kib64, {0, 0}, "", 1, false), 0}}));
    CHECK(layout.components[1].requested_stripes == 2);
    CHECK(layout.components[1].targets.empty());
    CHECK(compute_bytes_by_target(layout, kib64) == std::map<std::string, std::uint64_t>{{"OST0009", kib64}});
}

TEST_CASE("stale mirror does not count, all valid mirrors do") {
    const std::string first = plain_form(kib64, {1});
    const std::string right = plain_form(kib64, {2});
    CHECK(compute_bytes_by_target(parse_lustre_layout(composite_form({{0, ~0ULL, first}, {0, ~0ULL, right}}, 1)),
                                  kib64) ==
          std::map<std::string, std::uint64_t>{{"OST0001", kib64}, {"OST0002", kib64}});
    const StripeLayout stale = parse_lustre_layout(composite_form({{0, ~0ULL, first}, {0, ~0ULL, right, 0x11}}, 1));
    CHECK(stale.mirror_count == 2);
    CHECK(compute_bytes_by_target(stale, kib64) == std::map<std::string, std::uint64_t>{{"OST0001", kib64}});
}

TEST_CASE("bytes per target equal a bytewise count for any layout") {
    std::mt19937 random(5);
    const auto pick = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int round = 0; round < 200; ++round) {
        std::vector<Part> parts;
        std::uint64_t start = 0;
        const int count = pick(1, 4);
        for (int i = 0; i < count; ++i) {
            std::vector<std::uint32_t> osts(static_cast<std::size_t>(pick(1, 9)));
            for (auto& ost : osts) {
                ost = static_cast<std::uint32_t>(pick(0, 11));
            }
            const std::uint64_t end = i + 1 == count ? ~0ULL : start + kib64 * static_cast<unsigned>(pick(1, 30));
            parts.push_back(
                {start, end, plain_form(static_cast<std::uint32_t>(kib64) * static_cast<unsigned>(pick(1, 5)), osts)});
            start = end;
        }
        const StripeLayout layout = parse_lustre_layout(composite_form(parts));
        const auto size = static_cast<std::uint64_t>(pick(1, 6'000'000));
        CHECK(compute_bytes_by_target(layout, size) == counted(layout, size));
    }
}

TEST_CASE("damaged layout is refused without reading past its end") {
    std::mt19937 random(6);
    const std::string complete = composite_form(
        {{0, kib64, plain_form(kib64, {}, "", 0x100)}, {kib64, ~0ULL, plain_form(kib64, {4, 5, 6, 7}, "disk")}});
    for (std::size_t length = 0; length < complete.size(); ++length) {
        const std::string cut = complete.substr(0, length);
        CHECK_THROWS_AS(parse_lustre_layout(cut), std::invalid_argument);
    }
    int refused = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::string changed = complete;
        for (int i = 0; i < 3; ++i) {
            changed[std::uniform_int_distribution<std::size_t>(0, complete.size() - 1)(random)] =
                static_cast<char>(std::uniform_int_distribution<int>(0, 255)(random));
        }
        try {
            const StripeLayout layout = parse_lustre_layout(changed);
            std::uint64_t sum = 0;
            for (const auto& [target, bytes] : compute_bytes_by_target(layout, 1 << 20)) {
                sum += bytes;
            }
            CHECK(sum <= layout.components.size() << 20);
        } catch (const std::invalid_argument&) {
            ++refused;
        }
    }
    CHECK(refused > 500);
    CHECK(refused < 19'500);
    CHECK_THROWS_WITH_AS(parse_lustre_layout("\x01\x02\x03\x04 not a layout, and long enough for a head"),
                         doctest::Contains("unknown number 0x04030201"), std::invalid_argument);
}

TEST_CASE("Gluster output yields the bricks of a file") {
    const StripeLayout replica = parse_gluster_layout(
        "(<DISTRIBUTE:gv0-dht> (<REPLICATE:gv0-replicate-0> <POSIX(/bricks/b1):server1:/bricks/b1/f> "
        "<POSIX(/bricks/b2):server2:/bricks/b2/f>))");
    CHECK(compute_bytes_by_target(replica, 100) ==
          std::map<std::string, std::uint64_t>{{"server1:/bricks/b1", 100}, {"server2:/bricks/b2", 100}});
    CHECK_THROWS_AS(parse_gluster_layout("(<DISTRIBUTE:gv0-dht>)"), std::invalid_argument);
    CHECK_THROWS_AS(parse_gluster_layout("<POSIX(/bricks/b1):server1"), std::invalid_argument);
}

TEST_CASE("only the first Gluster shard is attributed") {
    using sonde::layouts::parse_gluster_size;
    const auto layout = sonde::layouts::parse_gluster_layout(
        "(<DISTRIBUTE:shard-dht> <POSIX(/b3/shard):vm:/b3/shard/f>) ", parse_gluster_size("4MB"));
    CHECK(sonde::layouts::find_targets_of_byte(layout, 4194303) == std::vector<std::string>{"vm:/b3/shard"});
    CHECK(sonde::layouts::find_targets_of_byte(layout, 4194304) == std::vector<std::string>{"?"});
    CHECK(parse_gluster_size("64MB") == 64U << 20U);
    CHECK(parse_gluster_size("4194304") == 4194304);
    CHECK(parse_gluster_size("") == 0);
    CHECK(parse_gluster_size("12 parsecs") == 0);
}
