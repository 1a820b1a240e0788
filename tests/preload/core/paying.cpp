// SPDX-License-Identifier: Apache-2.0
// Whether buffering pays: windows of calls, locks in between, and sleeps that become longer.
#include "buffer/ahead.hpp"

#include "buffered.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <memory>

using namespace under_test;
using buffer::File;

namespace {

/// A file of which nothing is known but its rule.
struct Unjudged {
    settings::Rule rule;
    std::unique_ptr<File> file = std::make_unique<File>();
    Unjudged() {
        file->rule = &rule;
        file->held.page_size = 1U << 20U;
    }
};

}  // namespace

TEST_CASE("a window of 256 calls pays with 16 hits, where calls are quick with 128; else the file sleeps") {
    const auto sleeps = [](int hits, std::uint64_t small_call_ns) {
        Unjudged one;
        one.file->payoff.small_call_ns = small_call_ns;
        for (int i = 0; i < 255; ++i) {
            REQUIRE_FALSE(buffer::count_call(*one.file, i < hits));
        }
        const bool sleep = buffer::count_call(*one.file, false);
        CHECK(one.file->payoff.window_calls == 0);
        CHECK(one.file->payoff.window_hits == 0);
        CHECK(one.file->statistics.dormant == (sleep ? 1 : 0));
        CHECK(one.file->payoff.dormant_calls == (sleep ? 1024 : 0));
        CHECK(one.file->payoff.guesses == (sleep ? 1 : hits > 128 ? 8 : 4));
        return sleep;
    };
    CHECK_FALSE(sleeps(16, 0));
    CHECK(sleeps(15, 0));
    CHECK_FALSE(sleeps(16, 3000));
    CHECK_FALSE(sleeps(128, 2999));
    CHECK_FALSE(sleeps(129, 2999));
    CHECK(sleeps(127, 2999));
}

TEST_CASE("after a sleep 64 calls decide, and each sleep is twice as long, up to 65,536 calls") {
    Unjudged one;
    std::uint32_t expected = 1024;
    one.file->payoff.dormant_calls = 0;
    for (int i = 0; i < 256; ++i) {
        buffer::count_call(*one.file, false);
    }
    for (int sleep = 1; sleep < 9; ++sleep) {
        CHECK(one.file->payoff.dormant_calls == expected);
        for (int i = 0; i < 63; ++i) {
            REQUIRE_FALSE(buffer::count_call(*one.file, i < 3));
        }
        REQUIRE(buffer::count_call(*one.file, false));
        expected = std::min(2 * expected, 65'536U);
    }
    for (int i = 0; i < 64; ++i) {
        REQUIRE_FALSE(buffer::count_call(*one.file, i < 4));
    }
    CHECK(one.file->payoff.dormant_calls == 0);
    one.rule.eager = true;
    for (int i = 0; i < 256; ++i) {
        REQUIRE_FALSE(buffer::count_call(*one.file, false));  // the user wants it whatever it brings
    }
    one.rule.eager = false;
    one.file->watching = true;
    for (int i = 0; i < 600; ++i) {
        REQUIRE_FALSE(buffer::count_call(*one.file, false));
    }
}

TEST_CASE("windows in which most calls are answered earn guesses, up to sixteen") {
    Unjudged one;
    const auto window = [&](int hits) {
        for (int i = 0; i < 256; ++i) {
            buffer::count_call(*one.file, i < hits);
        }
        CHECK(one.file->payoff.window_calls == 0);
        CHECK(one.file->payoff.window_hits == 0);
        return one.file->payoff.guesses;
    };
    one.file->payoff.guesses = 3;
    CHECK(window(128) == 3);
    CHECK(window(129) == 7);
    CHECK(window(256) == 11);
    CHECK(window(256) == 15);
    CHECK(window(256) == 16);
    CHECK(one.file->statistics.dormant == 0);
    CHECK(window(15) == 1);
    CHECK(one.file->statistics.dormant == 1);
}

TEST_CASE("a lock was in vain with fewer than 16 calls answered since the last one, or four times the bytes read") {
    Unjudged one;
    buffer::Statistics& counted = one.file->statistics;
    const auto lock = [&](std::uint64_t read_hits, std::uint64_t write_hits, std::uint64_t asked, std::uint64_t below) {
        counted.read.hits += read_hits;
        counted.write.hits += write_hits;
        counted.read.asked_bytes += asked;
        counted.read.below_bytes += below;
        const bool sleeps = buffer::count_lock(*one.file);
        return sleeps ? 100U : one.file->locking.vain;
    };
    CHECK(lock(15, 0, 0, 0) == 1);
    CHECK(lock(16, 0, 0, 0) == 0);
    CHECK(lock(0, 15, 0, 0) == 1);
    CHECK(lock(0, 16, 0, 0) == 0);
    CHECK(lock(8, 8, 100, 400) == 0);
    CHECK(lock(8, 8, 100, 401) == 1);
    CHECK(lock(7, 8, 100, 0) == 2);
    CHECK(lock(0, 0, 0, 0) == 3);
    CHECK(lock(0, 0, 0, 0) == 100);
    CHECK(one.file->locking.vain == 3);  // one more like these is enough
    CHECK(one.file->statistics.dormant == 1);
    CHECK(one.file->payoff.dormant_calls == 1024);
    CHECK(lock(0, 0, 0, 0) == 100);
    CHECK(one.file->payoff.dormant_calls == 2048);
    CHECK(lock(20, 0, 0, 0) == 0);
    CHECK(one.file->locking.hits == counted.read.hits + counted.write.hits);
    CHECK(one.file->locking.asked == 300);
    CHECK(one.file->locking.below == 801);
}
