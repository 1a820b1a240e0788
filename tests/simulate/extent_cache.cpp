// SPDX-License-Identifier: Apache-2.0
#include "model/extent_cache.hpp"

#include <doctest/doctest.h>

namespace sonde::simulate {
namespace {

TEST_CASE("cache distinguishes written bytes from read bytes") {
    ExtentCache cache(1000);
    cache.insert(1, 0, 300, true);
    cache.insert(1, 300, 500);
    CHECK(cache.find_end_of_cached_bytes(1, 0) == 500);  // one range, whoever brought it
    CHECK(cache.count_cached_bytes(1) == 500);
    CHECK(cache.count_written_bytes(1) == 300);
    cache.insert(1, 200, 400, true);
    CHECK(cache.count_written_bytes(1) == 400);
    cache.insert(1, 100, 150);  // a read in the middle of what was written
    CHECK(cache.count_cached_bytes(1) == 500);
    CHECK(cache.count_written_bytes(1) == 350);
    CHECK(cache.find_end_of_cached_bytes(1, 0) == 500);
    cache.clear();
    CHECK(cache.count_written_bytes(1) == 0);
}

TEST_CASE("cache evicts the least recently used bytes of either kind") {
    ExtentCache cache(1000);
    cache.insert(1, 0, 600, true);
    CHECK(cache.insert(1, 1000, 1700) == 300);  // the beginning of what was written
    CHECK(cache.count_written_bytes(1) == 300);
    CHECK(cache.find_end_of_cached_bytes(1, 0) == 0);
    CHECK(cache.find_end_of_cached_bytes(1, 300) == 600);
    CHECK(cache.insert(2, 0, 700) == 700);  // the read range was used longer ago than the written one
    CHECK(cache.count_written_bytes(1) == 300);
    CHECK(cache.bytes() == 1000);
}

}  // namespace
}  // namespace sonde::simulate
