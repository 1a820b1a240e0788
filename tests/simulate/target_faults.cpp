// SPDX-License-Identifier: Apache-2.0
// Faults of targets and drives: their effects on rates, counters and logs.
#include "fault_bench.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace sonde::simulate {
namespace {

MediumDescription hard_disk(double rate) {
    MediumDescription medium;
    medium.rate = {rate, rate};
    medium.inner_rate_share = 0.5;
    medium.seek = seconds_to_time(8e-3);
    medium.rotation = seconds_to_time(8e-3);
    medium.sorts_requests = true;
    medium.segment_bytes = 128U << 10U;
    return medium;
}

TEST_CASE("slow-target: only requests of the target are slowed") {
    FaultBench bench(small_site(4, 4, 100e6));
    for (std::uint32_t i = 0; i < 4; ++i) {
        bench.add(ModelCallKind::write, i, 50);
    }
    const Time sound = transfer_time(mib, 100e6);
    bench.begin("slow-target 2 5x");
    bench.run();
    for (const std::size_t i : {0U, 1U, 3U}) {
        CHECK(bench.end_times[i] == 50 * sound);
        CHECK(bench.target(i).write_us.sum == 50 * static_cast<std::uint64_t>(sound / 1000));
    }
    CHECK(to_seconds(bench.end_times[2]) == doctest::Approx(5 * 50 * to_seconds(sound)).epsilon(1e-6));
    CHECK(bench.target(2).write_us.sum == doctest::Approx(5 * 50 * 1e6 * to_seconds(sound)).epsilon(1e-3));
    CHECK(bench.target(2).write_bytes.sum == 50 * mib);
    CHECK(bench.messages().empty());  // 52 ms
    const Time before = bench.machine.now();
    bench.end("slow-target 2 5x");
    bench.run_again(50);
    CHECK(bench.last_end() - before == 50 * sound);
}

TEST_CASE("slow-target: writes of a second and more are logged") {
    SystemModel site = small_site(1, 1, 100e6);
    const auto run = [&site] {
        FaultBench bench(site);
        bench.add(ModelCallKind::write, 0, 17);
        bench.begin("slow-target t0 300x");
        bench.run();
        return bench.messages();
    };
    CHECK(run().empty());  // no other file system logs it
    site.file_system.kind = "lustre";
    const auto messages = run();
    REQUIRE(messages.size() == 2);  // of the first and the seventeenth
    CHECK(messages[0].text == "Lustre: fs-OST0000: slow start_page_write 3s due to heavy IO load");
}

TEST_CASE("slow-target: planned fault begins at its time") {
    FaultBench bench(small_site(1, 1, 100e6));
    bench.add(ModelCallKind::write, 0, 100);
    bench.begin("slow-target t0 3x at 500ms");
    bench.run();
    const double request_s = mib / 100e6;
    const double sound = std::ceil(0.5 / request_s);  // the request in flight at that time is not slowed
    CHECK(to_seconds(bench.last_end()) == doctest::Approx(request_s * (sound + 3 * (100 - sound))).epsilon(1e-6));
}

TEST_CASE("raid-rebuild: rate falls to the remaining share, md logs it") {
    SystemModel site = add_server(raid_site(100e6));
    site.file_system.is_local = false;
    site.media[0].degraded_share = 0.75;
    site.media[0].rebuild_share = 0.4;
    const auto time = [&site](const char* fault) {
        FaultBench bench(site);
        bench.add(ModelCallKind::read, 0, 10, 2 * mib);
        if (fault != nullptr) {
            bench.begin(fault);
            CHECK(bench.messages().size() == 2);
            CHECK(bench.messages()[0].text == "md/raid:md0: Disk failure on sda, disabling device.");
            CHECK(bench.messages()[1].text == "md: recovery of RAID array md0");
        }
        bench.run();
        return to_seconds(bench.last_end());
    };
    const double sound = time(nullptr);
    CHECK(time("raid-rebuild t0 20%") == doctest::Approx(sound / (0.8 * 0.75)).epsilon(1e-6));
    // Without a number it is what the RAID group says of its rebuilds.
    CHECK(time("raid-rebuild t0") == doctest::Approx(sound / (0.6 * 0.75)).epsilon(1e-6));
    FaultBench bench(site);
    bench.add(ModelCallKind::read, 0, 10, 2 * mib);
    bench.begin("raid-rebuild t0");
    bench.end("raid-rebuild t0");
    bench.run();
    CHECK(to_seconds(bench.last_end()) == doctest::Approx(sound).epsilon(1e-9));
    CHECK(bench.messages().back().text == "md: md0: recovery done.");
}

TEST_CASE("noisy-neighbor: stream gets the rate not used by neighbors") {
    SystemModel site = small_site(1, 1, 100e6);
    FaultBench bench(site);
    for (int i = 0; i < 8; ++i) {  // enough that the target always has some of ours
        bench.add(ModelCallKind::write, 0, 1000);
    }
    bench.begin("noisy-neighbor 40%");
    bench.run();
    CHECK(8000 * mib / to_seconds(bench.last_end()) == doctest::Approx(60e6).epsilon(0.02));
    const TargetCounters& counters = bench.target(0);
    CHECK(static_cast<double>(counters.neighbor_bytes) / to_seconds(bench.last_end()) ==
          doctest::Approx(40e6).epsilon(0.05));
    CHECK(counters.write_bytes.sum == 8000 * mib + counters.neighbor_bytes);
    // Switched off and on, there is one of them, not two; off, there is none.
    bench.end("noisy-neighbor");
    bench.begin("noisy-neighbor 40%");
    Time before = bench.last_end();
    bench.run_again(1000);
    CHECK(8000 * mib / to_seconds(bench.last_end() - before) == doctest::Approx(60e6).epsilon(0.03));
    bench.end("noisy-neighbor");
    bench.run_again(10);
    before = bench.last_end();
    bench.run_again(100);
    CHECK(800 * mib / to_seconds(bench.last_end() - before) == doctest::Approx(100e6).epsilon(0.001));
}

TEST_CASE("noisy-neighbor: overload of a slow target is limited") {
    FaultBench bench(small_site(1, 1, 100e6));
    bench.add(ModelCallKind::write, 0, 10);
    bench.begin("slow-target t0 10x");
    bench.begin("noisy-neighbor 80%");
    bench.run();
    // The target serves 10 MB/s. Each of our calls waits for at most 4,096 requests of others.
    CHECK(to_seconds(bench.last_end()) < 10 * 4097 * mib / 10e6);
    CHECK(to_seconds(bench.last_end()) > 4096 * mib / 10e6);
}

TEST_CASE("noisy-neighbor: call waits for neighbors as in M/D/1") {
    SystemModel site = small_site(1, 1, 100e6);
    site.clients[0].call_cost = 200'000'000;  // so far apart that each finds the others as they are on average
    FaultBench bench(site);
    bench.add(ModelCallKind::write, 0, 20'000, 4096);
    bench.begin("noisy-neighbor 50%");
    bench.run();
    const double others = mib / 100e6, load = 0.5;
    const double wait = load * others / (2 * (1 - load));
    const double mean_wait = to_seconds(bench.last_end()) / 20'000 - 0.2 - 4096 / 100e6;
    CHECK(mean_wait == doctest::Approx(wait).epsilon(0.03));
}

/// Makes a call 0.2 s after the last one has returned, with nothing in flight in between.
struct PausingStream : Listener {
    Machine* machine = nullptr;
    ModelOperation operation;
    std::uint64_t remaining_calls = 0;
    Time call_time = 0, waited = 0;

    void on_alarm(Time time, std::uint64_t) override {
        call_time = time;
        machine->submit(time, operation);
    }
    void on_completion(const CompletedOperation& completed) override {
        waited += completed.end - call_time;
        --remaining_calls;
        machine->set_alarm(completed.end + 200'000'000, 0);
    }
};

TEST_CASE("noisy-neighbor: load continues while the stream pauses") {
    PausingStream stream;
    Machine machine(small_site(1, 1, 100e6), {1, 0}, stream);
    stream.machine = &machine;
    stream.remaining_calls = 20'000;
    stream.operation.kind = ModelCallKind::write;
    stream.operation.direct = true;
    stream.operation.length = 4096;
    stream.operation.stream = machine.begin_stream(0);
    stream.operation.file = machine.get_file("f");
    machine.begin_fault(parse_fault("noisy-neighbor 50%"));
    machine.set_alarm(0, 0);
    while (stream.remaining_calls > 0) {
        REQUIRE(machine.handle_next_event());
    }
    const double others = mib / 100e6, load = 0.5;  // Pollaczek-Khinchine
    const double mean_wait = to_seconds(stream.waited) / 20'000 - 4096 / 100e6;
    CHECK(mean_wait == doctest::Approx(load * others / (2 * (1 - load))).epsilon(0.03));
    CHECK(static_cast<double>(machine.get_monitoring_data().targets[0].neighbor_bytes) / to_seconds(machine.now()) ==
          doctest::Approx(50e6).epsilon(0.01));
}

TEST_CASE("full-file-system: new files are slower and space shrinks") {
    SystemModel site = small_site(1, 1, 0);
    site.file_system.is_local = true;
    site.file_system.stripe_size = 1024 * mib;
    site.targets[0].rate = {};
    site.targets[0].medium = 0;
    site.targets[0].capacity_bytes = 10'000 * mib;
    site.media.push_back(hard_disk(100e6));
    const auto times = [&site](const char* fault) {
        std::vector<double> all;
        FaultBench bench(site);
        bench.add(ModelCallKind::write, 0, 1);
        bench.run();
        const double old = to_seconds(bench.last_end());
        if (fault != nullptr) {
            bench.begin(fault);
        }
        for (int i = 0; i < 400; ++i) {
            const Time before = bench.machine.now();
            bench.remaining_calls.assign(bench.remaining_calls.size(), 0);
            bench.add(ModelCallKind::write, 0, 1);
            bench.run();
            all.push_back(to_seconds(bench.last_end() - before));
        }
        const Time before = bench.machine.now();
        bench.remaining_calls.assign(bench.remaining_calls.size(), 0);
        bench.remaining_calls[0] = 1;
        bench.next_operations[0].offset = 0;
        bench.run();
        CHECK(to_seconds(bench.last_end() - before) == doctest::Approx(old).epsilon(1e-6));
        return all;
    };
    const auto mean_of = [](const std::vector<double>& values) {
        return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    };
    const double request_s = mib / 100e6;
    const std::vector<double> clean = times(nullptr);
    CHECK(*std::min_element(clean.begin(), clean.end()) == doctest::Approx(request_s).epsilon(1e-6));
    CHECK(*std::max_element(clean.begin(), clean.end()) == doctest::Approx(request_s).epsilon(1e-6));
    // Half full: anywhere on the drives. 1 / (1 - x / 2) with x uniform in 0 … 1 is 2 ln 2 on average, and at most 2.
    const std::vector<double> half = times("full-file-system 50%");
    CHECK(mean_of(half) == doctest::Approx(request_s * 2 * std::log(2)).epsilon(0.04));
    CHECK(*std::max_element(half.begin(), half.end()) < 2 * request_s * 1.001);
    CHECK(*std::max_element(half.begin(), half.end()) > 1.9 * request_s);
    // 90 %: in ten pieces beside that, nine moves of the arm of 12 ms.
    const std::vector<double> full = times("full-file-system 90%");
    CHECK(mean_of(full) - 9 * 12e-3 == doctest::Approx(request_s * 2 * std::log(2)).epsilon(0.04));
    FaultBench bench(site);
    bench.begin("full-file-system 90%");
    bench.add(ModelCallKind::write, 0, 20);
    bench.run();
    CHECK(bench.target(0).free_bytes == 1000 * mib - 20 * mib);
    CHECK(rejection(small_site(1, 1, 1e9), "full-file-system").find("where files lie costs nothing") !=
          std::string::npos);
}

TEST_CASE("full-file-system: several drives share the seeks") {
    SystemModel site = small_site(1, 1, 100e6);  // the target says what its drives do together
    site.file_system.stripe_size = 1024 * mib;
    MediumDescription medium = hard_disk(0);
    medium.rate = {};
    medium.inner_rate_share = 1;
    medium.drive_count = 10;
    site.media.push_back(medium);
    site.targets[0].medium = 0;
    FaultBench bench(site);
    bench.begin("full-file-system 90%");
    bench.add(ModelCallKind::write, 0, 100);
    bench.run();
    // Ten pieces of about 100 KiB, each on one drive of ten; moving bytes and moving arms is the same drives' time.
    CHECK(to_seconds(bench.last_end()) == doctest::Approx(100 * (mib / 100e6 + 9 * 12e-3 / 10)).epsilon(1e-4));
}

TEST_CASE("fault with an amount that changes nothing is rejected") {
    SystemModel site = add_server(raid_site(800e6));
    for (const char* fault : {"slow-target t0 1x", "slow-node c0 1x", "slow-drive t0 1x", "failing-drive t0 0",
                              "noisy-neighbor 0", "mds-saturated 0%"}) {
        CHECK(rejection(site, fault).find("would change nothing") != std::string::npos);
    }
    site.file_system.used_share = 0.3;
    site.media[0].inner_rate_share = 0.5;
    CHECK(rejection(site, "full-file-system 30%").find("would change nothing") != std::string::npos);
    CHECK(rejection(site, "full-file-system 0%").find("would change nothing") != std::string::npos);
    CHECK(rejection(site, "full-file-system 31%") == "accepted");
}

TEST_CASE("fault with an end lasts from its begin to its end") {
    FaultBench bench(small_site(1, 1, 1e6));
    bench.add(ModelCallKind::write, 0, 100, 1'000'000);  // a second each
    bench.begin("slow-target 0 3x at 10.5s until 40.5s");
    bench.run();
    // Ten calls end before 10.5 s; an eleventh has begun. Calls that begin from 11 s to 40.5 s take three seconds.
    CHECK(to_seconds(bench.last_end()) == doctest::Approx(11 + 10 * 3 + 79).epsilon(1e-6));
    CHECK(bench.machine.faults().empty());
    CHECK(parse_fault("slow-target 0 3x at 10s until 40s").to_text() == "slow-target 0 3 at 10s until 40s");
    CHECK_THROWS_AS(parse_fault("slow-target 0 3x at 10s until 9s"), SystemModelError);
}

TEST_CASE("server-lost: partner serves the targets after the recovery") {
    SystemModel site = small_site(1, 1, 1e6);
    site.file_system.kind = "lustre";
    for (const char* id : {"oss1", "oss2"}) {
        ServerDescription server;
        server.id = id;
        server.link = add_link(site, id, 1e12);
        site.servers.push_back(server);
    }
    site.servers[1].partner = 2;
    site.targets[0].server = 1;
    FaultBench bench(site);
    bench.add(ModelCallKind::write, 0, 20, 1'000'000);
    bench.begin("server-lost oss1 30s at 10.5s");
    bench.run();
    // The eleventh call is in service; the next waits from 11 s to 40.5 s.
    CHECK(to_seconds(bench.last_end()) == doctest::Approx(40.5 + 9).epsilon(1e-4));
    CHECK(bench.bytes_through("oss1") == 11'000'000 + 0);
    CHECK(bench.bytes_through("oss2") == 9'000'000);
    CHECK(bench.messages().back().text ==
          "Lustre: fs-OST0000: Will be in recovery for at least 0:30, or until 1 clients reconnect");
    CHECK(rejection(site, "server-lost oss2").find("no server takes over from oss2") != std::string::npos);
}

TEST_CASE("misaligned-slices: writes of full stripes become partial") {
    const SystemModel site = raid_site(272e6);
    const auto run = [&site](ModelCallKind call, const char* fault, std::uint64_t& read) {
        FaultBench bench(site);
        bench.add(call, 0, 50, 2 * mib);
        if (fault != nullptr) {
            bench.begin(fault);
        }
        bench.run();
        read = bench.machine.get_monitoring_data().media[0].read_bytes;
        CHECK(bench.machine.get_monitoring_data().media[0].written_bytes ==
              (call == ModelCallKind::write ? 100 * mib : 0));
        return to_seconds(bench.last_end());
    };
    std::uint64_t read = 0;
    const double aligned = run(ModelCallKind::write, nullptr, read);
    CHECK(read == 0);
    // Old data and parity of both parts are read: 2 MiB, and a segment of parity for each part.
    CHECK(run(ModelCallKind::write, "misaligned-slices 256 KiB", read) ==
          doctest::Approx(aligned * (2 + 4.0 / 9)).epsilon(1e-6));
    CHECK(read == 50 * (2 * mib + 2 * 262144));
    CHECK(run(ModelCallKind::write, "misaligned-slices 2 MiB", read) == doctest::Approx(aligned).epsilon(1e-9));
    CHECK(run(ModelCallKind::read, "misaligned-slices 256 KiB", read) ==
          doctest::Approx(run(ModelCallKind::read, nullptr, read)).epsilon(1e-9));
    CHECK(rejection(small_site(1, 1, 1e9), "misaligned-slices").find("parity") != std::string::npos);
}

}  // namespace
}  // namespace sonde::simulate
