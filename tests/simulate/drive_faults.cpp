// SPDX-License-Identifier: Apache-2.0
// Faults of single drives, and the counters of drives.
#include "fault_bench.hpp"

#include <doctest/doctest.h>
#include <cmath>

namespace sonde::simulate {
namespace {

TEST_CASE("failing-drive: share of requests is retried and logged") {
    const SystemModel site = add_server(small_site(1, 2, 100e6));
    SUBCASE("all of them") {
        FaultBench bench(site);
        bench.add(ModelCallKind::read, 0, 40);
        bench.begin("failing-drive t0 1");
        bench.run();
        CHECK(bench.last_end() == 40 * (transfer_time(mib, 100e6) + 500'000'000));
        CHECK(bench.target(0).retries == 40);
        CHECK(bench.messages().size() == 3);  // of the 1st, 17th and 33rd
        CHECK(bench.messages()[0].text.find("I/O error, dev t0") != std::string::npos);
        CHECK(bench.messages()[0].host == "oss");
    }
    SUBCASE("one in ten, and none at another target") {
        FaultBench bench(site);
        bench.add(ModelCallKind::read, 0, 4000);
        bench.add(ModelCallKind::read, 0, 4000);
        bench.begin("failing-drive t0 10%");
        bench.run();
        const auto retries = static_cast<double>(bench.target(0).retries);
        CHECK(std::abs(retries - 400) < 3.5 * std::sqrt(4000 * 0.1 * 0.9));
        CHECK(to_seconds(bench.end_times[0]) == doctest::Approx(4000 * mib / 100e6 + retries * 0.5).epsilon(1e-6));
        CHECK(bench.target(1).retries == 0);
        CHECK(bench.end_times[1] == 4000 * transfer_time(mib, 100e6));
    }
}

TEST_CASE("failing-drive: other requests wait for the retry") {
    FaultBench bench(add_server(small_site(2, 1, 100e6)));
    bench.add(ModelCallKind::read, 0, 500);
    bench.add(ModelCallKind::read, 1, 500);
    bench.begin("failing-drive t0 10%");
    bench.run();
    const auto retries = static_cast<double>(bench.target(0).retries);
    CHECK(retries > 50);
    CHECK(to_seconds(bench.last_end()) == doctest::Approx(1000 * mib / 100e6 + retries * 0.5).epsilon(1e-6));
}

TEST_CASE("failing-drive: drive appears in log and diskstats") {
    SystemModel site = raid_site(800e6);
    for (int i = 0; i < 9; ++i) {
        site.media[0].drive_ids.push_back("d" + std::to_string(i));
    }
    FaultBench bench(site);
    bench.add(ModelCallKind::write, 0, 40, 2 * mib);
    bench.begin("failing-drive t0 1");
    bench.run();
    CHECK(bench.messages()[0].text.find("I/O error, dev d0") != std::string::npos);
    const MonitoringData& monitoring = bench.machine.get_monitoring_data();
    REQUIRE(monitoring.drives.size() == 9);
    CHECK(monitoring.drives[0].busy - monitoring.drives[1].busy == 40 * 500'000'000LL);
    for (const MediumCounters& drive : monitoring.drives) {
        CHECK(drive.written_bytes == 40 * 262144);
    }
    CHECK(format_diskstats(monitoring).find("   8       0 d0 0 0 0 0 40 0 20480 0 0 ") != std::string::npos);
}

TEST_CASE("diskstats of drives have the transfers of partial stripes") {
    SystemModel site = raid_site(800e6);
    for (int i = 0; i < 9; ++i) {
        site.media[0].drive_ids.push_back("d" + std::to_string(i));
    }
    FaultBench bench(site);
    bench.add(ModelCallKind::write, 0, 1, 9U << 12U);  // part of the first segment, and its parity
    bench.run();
    std::uint64_t read = 0, written = 0;
    for (const MediumCounters& drive : bench.machine.get_monitoring_data().drives) {
        read += drive.read_bytes;
        written += drive.written_bytes;
    }
    CHECK(read == 2 * (9U << 12U));
    CHECK(written == 2 * (9U << 12U));
}

TEST_CASE("slow-drive: full stripes wait for the slow drive") {
    FaultBench bench(raid_site(800e6));
    bench.add(ModelCallKind::write, 0, 50, 2 * mib);
    bench.begin("slow-drive t0 5x");
    bench.run();
    CHECK(bench.last_end() == 50 * 5 * transfer_time(2 * mib, 800e6));
    bench.end("slow-drive t0 5x");
    const Time before = bench.last_end();
    bench.run_again(50);
    CHECK(bench.last_end() - before == 50 * transfer_time(2 * mib, 800e6));
    CHECK(rejection(small_site(1, 1, 1e9), "slow-drive t0").find("drives of t0 are not described") !=
          std::string::npos);
}

}  // namespace
}  // namespace sonde::simulate
