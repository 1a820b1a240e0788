// SPDX-License-Identifier: Apache-2.0
// Tests the access pattern of a call and the profitability of buffering, against figures calculated by hand.
#include "cache/readahead.hpp"

#include "buffered.hpp"
#include "cache/pages.hpp"
#include "model/state.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <string>

using namespace under_test;
using buffer::AccessForecast;
using buffer::File;
using buffer::Stream;

namespace {

constexpr std::uint32_t page = 1 << 20;

/// Returns the access pattern of the last of several calls on [begin, end).
AccessForecast moved(Stream& stream, std::initializer_list<std::pair<int, int>> calls, std::uint32_t page_size = page) {
    AccessForecast last;
    for (const auto& [begin, end] : calls) {
        last = buffer::follow_stream(stream, begin, end, page_size);
    }
    return last;
}

/// A file without any call yet; only its rule is set.
struct Unseen {
    settings::Rule rule;
    std::unique_ptr<File> file = std::make_unique<File>();
    Unseen() {
        rule.may_suspend = true;
        file->rule = &rule;
        file->pages.page_size = page;
    }
    AccessForecast judged(std::int64_t begin, std::int64_t end) {
        Stream stream;
        return buffer::classify_access(*file, stream, begin, end);
    }
};

}  // namespace

TEST_CASE(
    "stream_starts_at_file_begin_and_reach_grows_fourfold"
    "as far") {
    Stream stream;
    AccessForecast move = moved(stream, {{0, 8192}});
    CHECK(move.is_page_worthwhile);
    CHECK_FALSE(move.is_backward);
    CHECK_FALSE(move.is_dense);
    CHECK(move.bytes_to_load == 4 * 8192);
    CHECK(move.new_bytes == 8192);
    move = moved(stream, {{8192, 16384}});
    CHECK(move.bytes_to_load == 16 * 8192);
    CHECK(stream.forward == 2);
    for (int i = 2; i < 14; ++i) {
        move = moved(stream, {{i * 8192, (i + 1) * 8192}});
    }
    CHECK(move.bytes_to_load == 8192ULL << 20U);  // ten steps, and no more
    CHECK(stream.calls == 14);
    Stream small;
    CHECK(moved(small, {{0, 100}}).bytes_to_load == 16384);  // never less
}

TEST_CASE("first_distant_call_is_no_stream_but_its_successor_is") {
    Stream stream;
    AccessForecast move = moved(stream, {{5000, 6000}});
    CHECK_FALSE(move.is_page_worthwhile);
    CHECK(move.bytes_to_load == 0);
    CHECK(stream.forward == 0);
    CHECK(stream.step == 0);
    CHECK(move.new_bytes == 1000);
    move = moved(stream, {{6000, 7000}});
    CHECK(move.is_page_worthwhile);
    CHECK(stream.forward == 1);
    CHECK(stream.step == 1000);
    move = moved(stream, {{9000, 9100}});
    CHECK_FALSE(move.is_page_worthwhile);
    CHECK(stream.forward == 0);
    CHECK(stream.last_begin == 9000);
    CHECK(stream.last_end == 9100);
}

TEST_CASE("calls that end at the start of the previous are backward") {
    Stream stream;
    CHECK_FALSE(moved(stream, {{90'000, 100'000}}).is_backward);
    AccessForecast move = moved(stream, {{80'000, 90'000}});
    CHECK(move.is_backward);
    CHECK(move.is_page_worthwhile);
    CHECK(move.bytes_to_load == 40'000);
    CHECK(stream.backward == 1);
    move = moved(stream, {{70'000, 80'000}});
    CHECK(move.bytes_to_load == 160'000);
    CHECK_FALSE(moved(stream, {{80'000, 90'000}}).is_backward);
    CHECK(stream.backward == 0);
}

TEST_CASE("bytes are fresh that the call before did not touch") {
    Stream stream;
    CHECK(moved(stream, {{1000, 2000}, {1500, 2500}}).new_bytes == 500);
    CHECK(moved(stream, {{5000, 5100}}).new_bytes == 100);
    CHECK(moved(stream, {{5000, 5100}}).new_bytes == 0);
    CHECK(moved(stream, {{5020, 5030}}).new_bytes == 0);
}

TEST_CASE("three_short_equal_steps_are_a_dense_stream") {
    const auto dense = [](int length, int step, std::uint32_t page_size, int calls = 5) {
        Stream stream;
        AccessForecast last;
        for (int i = 0; i < calls; ++i) {
            last = moved(stream, {{50'000 + i * step, 50'000 + i * step + length}}, page_size);
        }
        return last;
    };
    CHECK(dense(1250, 5000, page).is_dense);
    CHECK_FALSE(dense(1249, 5000, page).is_dense);
    CHECK(dense(1250, 5000, 5000).is_dense);
    CHECK_FALSE(dense(1250, 5000, 4999).is_dense);
    CHECK_FALSE(dense(1250, 5000, page, 4).is_dense);  // two steps like the one before
    CHECK(dense(1250, -5000, page).is_dense);
    CHECK(dense(1250, -5000, page).is_backward);
    CHECK_FALSE(dense(1250, 5000, page).is_backward);
    CHECK_FALSE(dense(1250, 0, page).is_dense);
    CHECK(dense(10'000, 20'000, page).bytes_to_load == 640'000);  // 4^3 times the call
    Stream stream;
    moved(stream, {{1000, 1100}, {3000, 3100}, {5000, 5100}, {7000, 7100}, {9000, 9100}});
    CHECK(stream.equal_steps == 3);
    moved(stream, {{10'000, 10'100}});
    CHECK(stream.equal_steps == 0);
}

TEST_CASE("call_on_file_with_buffering_rule_never_bypasses") {
    Unseen unseen;
    unseen.rule.may_suspend = false;
    const AccessForecast move = unseen.judged(7'000'000, 9'000'000);
    CHECK(move.is_page_worthwhile);
    CHECK_FALSE(move.bypasses_pages);
    CHECK(move.bytes_to_load == page);
}

TEST_CASE("first_four_large_calls_go_straight") {
    Unseen unseen;
    CHECK_FALSE(unseen.judged(0, 8191).bypasses_pages);
    CHECK(unseen.judged(0, 8191).is_page_worthwhile);
    for (int i = 0; i < 4; ++i) {
        const AccessForecast move = unseen.judged(0, 8192);
        CHECK(move.bypasses_pages);
        CHECK_FALSE(move.is_page_worthwhile);
    }
    CHECK_FALSE(unseen.judged(0, 8192).bypasses_pages);
    CHECK(unseen.judged(0, 8192).is_page_worthwhile);
    for (int* descriptor : {&unseen.file->descriptors.direct_read_fd, &unseen.file->descriptors.direct_write_fd}) {
        unseen.file->profitability.probes = 0;
        *descriptor = 5;
        CHECK_FALSE(unseen.judged(0, 8192)
                        .bypasses_pages);  // how fast the kernel's memory is says nothing where we go around it
        *descriptor = -1;
    }
}

TEST_CASE("large_calls_go_straight_on_storage_fast_as_memory") {
    Unseen unseen;
    unseen.file->profitability.best_bytes_per_us = 1501;
    CHECK(unseen.judged(0, 8192).bypasses_pages);
    CHECK_FALSE(unseen.judged(0, 8192).is_page_worthwhile);
    CHECK_FALSE(unseen.judged(0, 8191).bypasses_pages);
    Stream stream;
    CHECK(buffer::classify_access(*unseen.file, stream, 0, 8000).bytes_to_load == 32'000);
    for (int i = 1; i < 8; ++i) {
        CHECK(buffer::classify_access(*unseen.file, stream, i * 8000, i * 8000 + 8000).bytes_to_load <= 131'072);
    }
    CHECK(buffer::classify_access(*unseen.file, stream, 64'000, 72'000).bytes_to_load == 131'072);
    unseen.file->profitability.probes = 9;
    unseen.file->profitability.best_bytes_per_us = 1500;
    CHECK_FALSE(unseen.judged(0, 8192).bypasses_pages);
    unseen.file->profitability.best_bytes_per_us = 1501;
    unseen.file->descriptors.direct_read_fd = 5;
    CHECK_FALSE(unseen.judged(0, 8192).bypasses_pages);
}

TEST_CASE("call_time_is_recent_and_storage_rate_is_recent_maximum") {
    Unseen unseen;
    buffer::Profitability& payoff = unseen.file->profitability;
    buffer::record_call_time(*unseen.file, 100, 8000);
    CHECK(payoff.small_call_ns == 8000);
    CHECK(payoff.best_bytes_per_us == 0);  // so few bytes say nothing of a rate
    buffer::record_call_time(*unseen.file, 4095, 16'000);
    CHECK(payoff.small_call_ns == 9000);
    CHECK(payoff.best_bytes_per_us == 0);
    buffer::record_call_time(*unseen.file, 4096, 4095);
    CHECK(payoff.best_bytes_per_us == 1000);
    CHECK(payoff.small_call_ns == 9000 - 1125 + 511);
    buffer::record_call_time(*unseen.file, 65'536, 1);
    CHECK(payoff.small_call_ns == 9000 - 1125 + 511);
    CHECK(payoff.best_bytes_per_us == 32'768'000);
    payoff.best_bytes_per_us = 1600;
    buffer::record_call_time(*unseen.file, 65'536, 65'535'999);
    CHECK(payoff.best_bytes_per_us == 1500);  // a sixteenth less, because nothing was as quick again
    payoff.best_bytes_per_us = 0;
    buffer::record_transfer_time(*unseen.file, 65'535, 1);
    CHECK(payoff.best_bytes_per_us == 0);
    buffer::record_transfer_time(*unseen.file, 65'536, 65'535);
    CHECK(payoff.best_bytes_per_us == 500);  // of that size a good disk is half as fast as memory
}

TEST_CASE("third_call_in_a_page_loads_it_while_guesses_remain") {
    Unseen unseen;
    buffer::Profitability& payoff = unseen.file->profitability;
    payoff.speculative_loads_left = 2;
    const auto touches = [&](int times, std::int64_t index) {
        std::string answers;
        for (int i = 0; i < times; ++i) {
            answers += buffer::is_page_worthwhile(*unseen.file, index) ? 'y' : 'n';
        }
        return answers;
    };
    CHECK(touches(6, 7) == "nnynny");
    CHECK(payoff.speculative_loads_left == 0);
    CHECK(touches(4, 8) == "nnnn");
    payoff.speculative_loads_left = 9;
    CHECK(touches(2, 9) == "nn");
    CHECK(touches(1, 9 + 128) == "n");  // takes the place of page 9
    CHECK(touches(3, 9) == "nny");
    CHECK(touches(2, 10) == "nn");
    payoff.small_call_ns = 2999;
    CHECK(touches(3, 10) == "nnn");
    payoff.small_call_ns = 3000;
    CHECK(touches(1, 10) == "y");
    payoff.small_call_ns = 2999;
    unseen.rule.may_suspend = false;
    CHECK(touches(3, 11) == "nny");
}

TEST_CASE("used_read_ahead_earns_guesses_and_unused_pauses_it") {
    Unseen unseen;
    unseen.file->profitability.speculative_loads_left = 15;
    buffer::Page unused;
    buffer::count_used_read_ahead(*unseen.file, unused);
    CHECK(unseen.file->statistics.read_aheads_used == 0);
    for (int i = 0; i < 3; ++i) {
        buffer::Page used;
        used.is_read_ahead = true;
        buffer::count_used_read_ahead(*unseen.file, used);
        CHECK_FALSE(used.is_read_ahead);
    }
    CHECK(unseen.file->statistics.read_aheads_used == 3);
    CHECK(unseen.file->profitability.speculative_loads_left == 16);
    const auto pause = [](std::uint64_t started, std::uint64_t unused_before) {
        Unseen other;
        other.file->statistics.read_aheads_started = started;
        other.file->statistics.read_aheads_unused = unused_before;
        buffer::count_unused_read_ahead(*other.file);
        CHECK(other.file->statistics.read_aheads_unused == unused_before + 1);
        return other.file->profitability.read_ahead_pause;
    };
    CHECK(pause(8, 2) == 256);  // three of eight
    CHECK(pause(8, 1) == 0);
    CHECK(pause(7, 6) == 0);
}

TEST_CASE("long_stream_drops_its_pages_on_fast_storage") {
    Unseen unseen;
    unseen.file->pages.page_size = 65'536;
    const auto passes = [&](int calls, int bytes, bool again = false) {
        Stream stream;
        AccessForecast last;
        for (int i = 0; i < calls; ++i) {
            last = buffer::classify_access(*unseen.file, stream, i * bytes, (i + 1) * bytes);
        }
        if (again) {
            last = buffer::classify_access(*unseen.file, stream, 500'000, 500'100);
        }
        CHECK(last.stream_bytes == (again ? 0U : static_cast<unsigned>(calls * bytes)));
        return last.leaves_page_behind;
    };
    CHECK_FALSE(passes(17, 4096));  // nothing is known of it
    unseen.file->profitability.best_bytes_per_us = 1501;
    CHECK_FALSE(passes(16, 4096));
    CHECK(passes(17, 4096));
    CHECK_FALSE(passes(17, 4096, true));
    CHECK_FALSE(passes(20, 8192));  // which bypass the buffer
    unseen.rule.may_suspend = false;
    CHECK_FALSE(passes(17, 4096));
}

TEST_CASE("unknown_storage_limits_reach_to_128_kib") {
    Unseen unseen;
    unseen.file->profitability.probes = 9;
    const auto reach = [&](int bytes) {
        Stream stream;
        return buffer::classify_access(*unseen.file, stream, 0, bytes).bytes_to_load;
    };
    unseen.file->profitability.measured_transfers = 2;
    CHECK(reach(100'000) == 131'072);
    CHECK(reach(20'000) == 80'000);
    unseen.file->profitability.measured_transfers = 3;
    CHECK(reach(100'000) == 400'000);
    unseen.file->profitability.measured_transfers = 2;
    unseen.file->pages.page_size = 65'535;
    CHECK(reach(100'000) == 400'000);  // so small a page is not worth asking
}
