// SPDX-License-Identifier: Apache-2.0
// Operations given to targets by offset: drawn layouts and operations against a calculation byte by byte.
#include "patterns/stripes.hpp"
#include "workloads/target_counter.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

using sonde::meters::TargetCell;
using sonde::meters::TargetMeter;
using sonde::patterns::FileStripes;
using sonde::patterns::Reciprocal;
using sonde::patterns::StripeMap;
using sonde::patterns::StripePart;
using sonde::workloads::StripeQuery;
using sonde::workloads::TargetCounter;

namespace {

/// The target of one byte, as slowly and plainly as it can be said; empty when nobody knows.
std::string target_of(const FileStripes& stripes, std::uint64_t byte) {
    for (const StripePart& part : stripes) {
        if (byte >= part.start && byte < part.end && !part.targets.empty()) {
            return part.stripe == 0 ? (part.targets.size() == 1 ? part.targets[0] : "")
                                    : part.targets[(byte + part.shift) / part.stripe % part.targets.size()];
        }
    }
    return "";
}

struct Sum {
    std::uint64_t bytes = 0, single = 0, split = 0;
    bool operator==(const Sum&) const = default;
};

/// Bytes that an operation adds to each target, counted byte by byte.
void add_slowly(std::map<std::string, Sum>& sums, const FileStripes& stripes, std::uint64_t offset,
                std::uint32_t length) {
    std::map<std::string, std::uint64_t> bytes;
    for (std::uint64_t byte = offset; byte < offset + length; ++byte) {
        ++bytes[target_of(stripes, byte)];
    }
    for (const auto& [name, count] : bytes) {
        if (!name.empty()) {
            sums[name].bytes += count;
            ++(bytes.size() == 1 ? sums[name].single : sums[name].split);
        }
    }
}

std::map<std::string, Sum> collect_sums(const TargetMeter& meter) {
    std::map<std::string, Sum> sums;
    for (std::uint32_t t = 0; t < meter.names().size(); ++t) {
        TargetCell all;
        for (std::uint32_t row = 0; row < meter.rows(); ++row) {
            all.add(meter.cell(0, row, t));
        }
        if (all.is_used()) {
            sums[meter.names()[t]] = {all.bytes, all.single_ops, all.split_ops};
        }
    }
    return sums;
}

/// Components one behind the other, some without targets, gaps between some; stripes of all lengths.
FileStripes drawn(std::mt19937& random) {
    const auto below = [&random](std::uint64_t limit) { return random() % limit; };
    FileStripes stripes;
    std::uint64_t start = below(3) == 0 ? below(100) : 0;
    for (std::uint64_t parts = 1 + below(3); parts > 0; --parts) {
        StripePart part;
        part.start = start;
        part.end = parts == 1 && below(2) == 0 ? ~0ULL : start + 1 + below(700);
        part.stripe = below(6) == 0 ? 0 : below(2) == 0 ? std::uint64_t{1} << below(8) : 1 + below(90);
        for (std::uint64_t count = part.stripe == 0 ? 1 : below(6); count > 0; --count) {
            part.targets.push_back("OST" + std::to_string(below(5)));
        }
        part.shift = below(2) == 0 ? 0 : below(1 + part.stripe * part.targets.size());
        start = part.end + (below(3) == 0 ? below(50) : 0);
        stripes.push_back(part);
    }
    std::shuffle(stripes.begin(), stripes.end(), random);
    return stripes;
}

std::shared_ptr<TargetMeter> fresh() {
    return std::make_shared<TargetMeter>(0, 1000);
}

const StripeQuery nobody_answers = [](const std::string&) { return FileStripes(); };

}  // namespace

TEST_CASE("reciprocal division equals division up to 64 bits") {
    std::mt19937_64 random(7);
    for (int i = 0; i < 100'000; ++i) {
        const std::uint64_t divisor = std::max<std::uint64_t>(1, random() >> (random() % 64));
        const std::uint64_t value = random() >> (random() % 64);
        for (const std::uint64_t number :
             {value, value / divisor * divisor, value / divisor * divisor - 1, ~std::uint64_t{0}}) {
            REQUIRE(Reciprocal(divisor).quotient(number) == number / divisor);
        }
    }
}

namespace {

/// Numbers of targets as they come in these layouts: "OST3" is 3.
const auto number_of_target = [](const std::string& name) {
    return static_cast<std::uint32_t>(std::stoul(name.substr(3)));
};

/// "[from, to) on target" of the stretch around a byte; "-" for nobody, "?" when a target is chosen later.
std::string stretch(const StripeMap& map, std::uint64_t offset) {
    const StripeMap::StripeExtent extent = map.find(offset);
    return "[" + std::to_string(extent.from) + ", " +
           (extent.to == ~std::uint64_t{0} ? "end" : std::to_string(extent.to)) + ") on " +
           (extent.is_pending                       ? "?"
            : extent.target == StripeMap::no_target ? "-"
                                                    : std::to_string(extent.target));
}

}  // namespace

TEST_CASE("a stretch of a file ends with its stripe, or with its part") {
    // Three targets of 64 B each in turn, which began 30 bytes before the file does; the part is [100, 300).
    const StripeMap one({{.start = 100, .end = 300, .stripe = 64, .shift = 30, .targets = {"OST7", "OST8", "OST9"}}},
                        number_of_target);
    CHECK(stretch(one, 100) == "[100, 162) on 9");
    CHECK(stretch(one, 161) == "[100, 162) on 9");
    CHECK(stretch(one, 162) == "[162, 226) on 7");
    CHECK(stretch(one, 225) == "[162, 226) on 7");
    CHECK(stretch(one, 226) == "[226, 290) on 8");
    CHECK(stretch(one, 299) == "[290, 300) on 9");
    CHECK(stretch(one, 300) == "[300, end) on -");
    CHECK(stretch(one, 0) == "[0, 100) on -");
    CHECK(stretch(one, 99) == "[99, 100) on -");
}

TEST_CASE("file parts: gaps, complete parts and waiting components") {
    const StripeMap map(
        {{.start = 50, .end = 60, .stripe = 4, .targets = {"OST1", "OST1"}},  // whole, though in stripes
         {.start = 0, .end = 20, .stripe = 8, .targets = {"OST2", "OST3"}},
         {.start = 20, .end = 40, .targets = {"OST4"}},
         {.start = 60, .end = 70, .stripe = 5, .is_pending = true},
         {.start = 70, .end = 80, .targets = {"OST5", "OST6"}}},  // copies
        number_of_target);
    CHECK(stretch(map, 0) == "[0, 8) on 2");
    CHECK(stretch(map, 15) == "[8, 16) on 3");
    CHECK(stretch(map, 19) == "[16, 20) on 2");
    CHECK(stretch(map, 20) == "[20, 40) on 4");
    CHECK(stretch(map, 39) == "[20, 40) on 4");
    CHECK(stretch(map, 40) == "[40, 50) on -");
    CHECK(stretch(map, 45) == "[45, 50) on -");
    CHECK(stretch(map, 57) == "[50, 60) on 1");
    CHECK(stretch(map, 63) == "[60, 70) on ?");
    CHECK(stretch(map, 75) == "[70, 80) on -");
    CHECK(stretch(map, 80) == "[80, end) on -");
    CHECK(stretch({}, 7) == "[7, end) on -");
}

TEST_CASE("default part is the entire file on a single target") {
    StripePart part;
    part.targets = {"OST5"};
    const StripeMap whole({part}, number_of_target);
    CHECK(stretch(whole, 0) == "[0, end) on 5");
    CHECK(stretch(whole, ~std::uint64_t{0} - 1) == "[0, end) on 5");
    part.stripe = 8;
    part.targets = {"OST5", "OST6"};
    const StripeMap striped({part}, number_of_target);
    CHECK(stretch(striped, 8) == "[8, 16) on 6");
    CHECK(stretch(striped, ~std::uint64_t{0} - 1) == "[18446744073709551608, end) on 6");
    CHECK(Reciprocal().divisor() == 1);
    CHECK(Reciprocal().quotient(77) == 77);
}

TEST_CASE("random operations map to targets of a bytewise count") {
    std::mt19937 random(20261122);
    for (int round = 0; round < 400; ++round) {
        const auto length = static_cast<std::uint32_t>(1 + random() % 200);
        const auto meter = fresh();
        TargetCounter counting(nobody_answers, meter, length);
        std::map<std::string, Sum> expected;
        for (int file = 0; file < 3; ++file) {
            const FileStripes stripes = drawn(random);
            counting.set_file("file", stripes);
            std::uint64_t offset = random() % 2000;
            for (int i = 0; i < 40; ++i) {
                counting.add(0, offset, 10, 20, 10);
                add_slowly(expected, stripes, offset, length);
                offset = i % 3 == 0 ? random() % 2000 : offset + length;  // in turn, and anywhere
            }
        }
        REQUIRE(collect_sums(*meter) == expected);
    }
}

TEST_CASE("batched counting equals counting one by one") {
    std::mt19937 random(5);
    for (int round = 0; round < 200; ++round) {
        const auto length = static_cast<std::uint32_t>(1 + random() % 60);
        const auto one_by_one = std::make_shared<TargetMeter>(0, 50);
        const auto together = std::make_shared<TargetMeter>(0, 50);
        TargetCounter plain(nobody_answers, one_by_one, length);
        TargetCounter joined(nobody_answers, together, length);
        const FileStripes stripes = drawn(random);
        plain.set_file("file", stripes);
        joined.set_file("file", stripes);
        std::uint64_t tick = 0, offset = 0;
        for (int batch = 0; batch < 6; ++batch) {
            std::vector<std::uint64_t> offsets, ends;
            const std::uint64_t begin = tick;
            for (std::uint64_t count = 1 + random() % 40; count > 0; --count) {
                offsets.push_back(offset);
                ends.push_back(tick += random() % 30);
                offset = random() % 4 == 0 ? random() % 2000 : offset + length;
            }
            const auto ns_of = [](std::uint64_t ticks) { return 3 * ticks; };
            joined.add_consecutive(1, offsets.data(), begin, ends, ns_of);
            for (std::size_t i = 0; i < ends.size(); ++i) {
                const std::uint64_t from = i == 0 ? begin : ends[i - 1];
                plain.add(1, offsets[i], from, ends[i], ns_of(ends[i] - from));
            }
        }
        REQUIRE(one_by_one->names() == together->names());
        REQUIRE(one_by_one->doublings() == together->doublings());
        for (std::uint32_t t = 0; t < one_by_one->names().size(); ++t) {
            CHECK(one_by_one->longest_ns(1, t) == together->longest_ns(1, t));
            for (std::uint32_t row = 0; row < one_by_one->rows(); ++row) {
                const TargetCell& a = one_by_one->cell(1, row, t);
                const TargetCell& b = together->cell(1, row, t);
                REQUIRE(a.bytes == b.bytes);
                REQUIRE(a.single_ops == b.single_ops);
                REQUIRE(a.single_ns == b.single_ns);
                REQUIRE(a.split_ops == b.split_ops);
            }
            for (std::size_t bucket = 0; bucket < sonde::meters::TargetLatency::buckets; ++bucket) {
                REQUIRE(one_by_one->latencies(1, bucket, t) == together->latencies(1, bucket, t));
            }
        }
    }
}

TEST_CASE("late component targets are requested once") {
    StripePart first{.start = 0, .end = 100, .stripe = 10, .shift = 0, .targets = {"OST0"}, .is_pending = false};
    StripePart second{.start = 100, .end = ~0ULL, .stripe = 10, .shift = 0, .targets = {}, .is_pending = true};
    int questions = 0;
    const StripeQuery ask = [&](const std::string& path) {
        CHECK(path == "file");
        ++questions;
        second.targets = {"OST1", "OST2"};
        second.is_pending = false;
        return FileStripes{first, second};
    };
    const auto meter = fresh();
    TargetCounter counting(ask, meter, 10);
    counting.set_file("file", {first, second});
    for (std::uint64_t offset = 0; offset < 140; offset += 10) {
        counting.add(0, offset, 0, 1, 1);
    }
    CHECK(questions == 1);
    CHECK(collect_sums(*meter) ==
          std::map<std::string, Sum>{{"OST0", {100, 10, 0}}, {"OST1", {20, 2, 0}}, {"OST2", {20, 2, 0}}});

    const auto never = fresh();
    int unanswered_queries = 0;
    const StripePart pending{.start = 0, .end = ~0ULL, .stripe = 0, .shift = 0, .targets = {}, .is_pending = true};
    const StripeQuery no_answer = [&](const std::string&) {
        ++unanswered_queries;
        return FileStripes{first, pending};
    };
    TargetCounter unanswered(no_answer, never, 10);
    unanswered.set_file("file", {pending});
    for (std::uint64_t offset = 200; offset < 300; offset += 10) {
        unanswered.add(0, offset, 0, 1, 1);
    }
    CHECK(unanswered_queries == 1);
    CHECK(collect_sums(*never).empty());
}

TEST_CASE("bytes with several valid copies belong to no target") {
    const auto meter = fresh();
    TargetCounter counting(nobody_answers, meter, 10);
    counting.set_file(
        "file", {{.start = 0, .end = ~0ULL, .stripe = 0, .shift = 0, .targets = {"a", "b"}, .is_pending = false}});
    counting.add(0, 0, 0, 1, 1);
    CHECK(collect_sums(*meter).empty());
}
