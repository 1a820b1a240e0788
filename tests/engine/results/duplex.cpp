// SPDX-License-Identifier: Apache-2.0
// Two streams at once, against figures worked out by hand.
#include "results/duplex.hpp"

#include <doctest/doctest.h>

using namespace sonde;
using nlohmann::ordered_json;

namespace {

plan::Phase write_beside_read() {
    plan::Phase phase;
    phase.op = plan::Op::duplex;
    phase.streams = {{"out", true, plan::DuplexStream::TaskSubset::same, 0},
                     {"in", false, plan::DuplexStream::TaskSubset::same, 1}};
    return phase;
}

ordered_json streams(double write, double read) {
    return {{"streams", {{{"bytes_per_s", write}}, {{"bytes_per_s", read}}}}};
}

}  // namespace

TEST_CASE("duplex_sum_fairness_and_efficiency") {
    ordered_json line = streams(300, 100);
    results::add_duplex(line, write_beside_read(), {.write = 500, .read = 300});
    CHECK(line.at("streams").at(0).at("id") == "out");
    CHECK(line.at("streams").at(0).at("op") == "write");
    CHECK(line.at("streams").at(1).at("op") == "read");
    CHECK(line.at("duplex").at("bytes_per_s") == 400.0);
    CHECK(line.at("duplex").at("fairness").get<double>() == doctest::Approx(1.0 / 3));
    CHECK(line.at("duplex").at("efficiency") == 0.5);
}

TEST_CASE("efficiency_needs_rates_of_both_directions") {
    ordered_json line = streams(300, 100);
    results::add_duplex(line, write_beside_read(), {.write = 500, .read = 0});
    CHECK_FALSE(line.at("duplex").contains("efficiency"));
    line = streams(300, 100);
    results::add_duplex(line, write_beside_read(), {.write = 0, .read = 300});
    CHECK_FALSE(line.at("duplex").contains("efficiency"));
    ordered_json still = streams(0, 0);
    results::add_duplex(still, write_beside_read(), {.write = 500, .read = 300});
    CHECK_FALSE(still.contains("duplex"));
}

TEST_CASE("direction_rates_belong_to_last_single_phase") {
    results::DirectionRates half;
    const auto rate = [](std::uint64_t bytes) {
        return std::map<std::string, results::RateValue>{{"transfer", {bytes, 1, 2.0}}};
    };
    half.set_rate(plan::Op::write, rate(200));
    half.set_rate(plan::Op::read, rate(600));
    CHECK(half.write == 100.0);
    CHECK(half.read == 300.0);
    half.set_rate(plan::Op::duplex, rate(10));
    half.set_rate(plan::Op::mixed, rate(10));
    half.set_rate(plan::Op::write, {});
    CHECK(half.write == 100.0);
    half.set_rate(plan::Op::rewrite, rate(20));
    CHECK(half.write == 10.0);
}
