// SPDX-License-Identifier: Apache-2.0
// Stations against results of queueing theory (L. Kleinrock, Queueing Systems, 1975; J. R. Jackson 1963).
#include "kernel/event_queue.hpp"
#include "kernel/random.hpp"
#include "kernel/stations.hpp"

#include <doctest/doctest.h>
#include <vector>

namespace sonde::simulate {
namespace {

/// Mean time in the station of `count` customers at rate `load` of a server whose mean service is a millisecond.
template <class Station, class Service>
double mean_time(Station& station, double load, int count, Service service) {
    Random chance(7, static_cast<std::uint64_t>(load * 100));
    double sum = 0, arrival = 0;
    for (int i = 0; i < count; ++i) {
        arrival += 1e6 / load * chance.exponential();
        const auto now = static_cast<Time>(arrival);
        sum += static_cast<double>(station.reserve(now, service(chance)).end - now);
    }
    return sum / count / 1e6;
}

TEST_CASE("single server with equal services waits as in M/D/1") {
    for (const double load : {0.3, 0.6, 0.8}) {
        SingleServerStation station;
        const double truth = 1 + load / (2 * (1 - load));
        const double mean = mean_time(station, load, 2'000'000, [](Random&) { return Time{1'000'000}; });
        CHECK(mean == doctest::Approx(truth).epsilon(0.01));
    }
}

TEST_CASE("single server with random services waits as in M/M/1") {
    for (const double load : {0.3, 0.6, 0.8}) {
        SingleServerStation station;
        const auto service = [](Random& chance) { return static_cast<Time>(1e6 * chance.exponential()); };
        CHECK(mean_time(station, load, 4'000'000, service) == doctest::Approx(1 / (1 - load)).epsilon(0.01));
    }
}

TEST_CASE("four servers with one queue wait as in M/M/4") {
    MultiServerStation station(4);
    const double load = 0.7;
    // Erlang C for c = 4, a = 2.8.
    const double a = 4 * load;
    const double sum = 1 + a + a * a / 2 + a * a * a / 6;
    const double last = a * a * a * a / 24 / (1 - load);
    const double truth = 1 + last / (sum + last) / (4 * (1 - load));
    const auto service = [](Random& chance) { return static_cast<Time>(1e6 * chance.exponential()); };
    CHECK(mean_time(station, 4 * load, 4'000'000, service) == doctest::Approx(truth).epsilon(0.01));
}

TEST_CASE("closed network has the throughput of mean value analysis") {
    constexpr int customers = 6;
    constexpr double think = 4, first = 1, second = 0.7;  // ms, exponential
    // Exact MVA for two queueing stations and a delay.
    double q1 = 0, q2 = 0, throughput = 0;
    for (int n = 1; n <= customers; ++n) {
        const double r1 = first * (1 + q1), r2 = second * (1 + q2);
        throughput = n / (think + r1 + r2);
        q1 = throughput * r1;
        q2 = throughput * r2;
    }
    Random chance(3);
    SingleServerStation first_station, second_station;
    EventQueue queue;
    const auto draw = [&chance](double ms) { return static_cast<Time>(ms * 1e6 * chance.exponential()); };
    for (std::uint32_t i = 0; i < customers; ++i) {
        queue.push(draw(think), 0, i);
    }
    std::uint64_t on_completion = 0;
    Time now = 0;
    while (on_completion < 600'000) {
        const ScheduledEvent event = queue.pop();
        now = event.time;
        if (event.kind == 0) {
            queue.push(first_station.reserve(now, draw(first)).end, 1, event.subject);
        } else if (event.kind == 1) {
            queue.push(second_station.reserve(now, draw(second)).end, 2, event.subject);
        } else {
            ++on_completion;
            queue.push(now + draw(think), 0, event.subject);
        }
    }
    CHECK(static_cast<double>(on_completion) / (static_cast<double>(now) / 1e6) ==
          doctest::Approx(throughput).epsilon(0.01));
}

TEST_CASE("events are returned by time, then by order of push") {
    EventQueue queue;
    Random chance(1);
    for (std::uint32_t i = 0; i < 20'000; ++i) {
        queue.push(static_cast<Time>(chance.integer_below(500)), 0, i);
    }
    ScheduledEvent last = queue.pop();
    while (!queue.is_empty()) {
        const ScheduledEvent next = queue.pop();
        REQUIRE((next.time > last.time || (next.time == last.time && next.subject > last.subject)));
        last = next;
    }
}

TEST_CASE("slowdown noise is one-sided and autocorrelated") {
    SlowdownNoise weather(5, 1, 0.2);
    double sum = 0, squares = 0, products = 0, before = 0;
    constexpr int steps = 200'000;
    for (int i = 0; i < steps; ++i) {
        const double factor = weather.factor(Time{i} * 1'000'000'000);
        REQUIRE(factor >= 1);
        sum += factor;
        squares += factor * factor;
        products += factor * before;
        before = factor;
    }
    const double mean = sum / steps;
    const double variance = squares / steps - mean * mean;
    CHECK(std::sqrt(variance) / mean == doctest::Approx(0.2).epsilon(0.05));
    const double correlation = (products / steps - mean * mean) / variance;
    CHECK(correlation > 0.5);
    CHECK(correlation < 0.75);
}

}  // namespace
}  // namespace sonde::simulate
