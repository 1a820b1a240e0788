// SPDX-License-Identifier: Apache-2.0
// A program that does nothing but be a team: started by launchers in test_launchers.py, it goes through every call of
// the interface, checks what it can check itself, and prints one line of JSON from the root.
#include "ranks/team_factory.hpp"

#include <sys/resource.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using sonde::ranks::form_team;
using sonde::ranks::LaunchMode;
using sonde::ranks::NodeControl;
using sonde::ranks::Team;
using sonde::ranks::TeamRequest;
using Options = std::map<std::string, std::string>;

int number(const Options& options, const std::string& name, int otherwise) {
    const auto option = options.find(name);
    return option != options.end() ? std::atoi(option->second.c_str()) : otherwise;
}

TeamRequest request_from(const Options& options) {
    const std::map<std::string, LaunchMode> kinds{{"automatic", LaunchMode::automatic},
                                                  {"single", LaunchMode::single},
                                                  {"forked", LaunchMode::forked},
                                                  {"node", LaunchMode::node},
                                                  {"mpi", LaunchMode::mpi}};
    TeamRequest request;
    const auto kind = options.find("launch");
    request.launch = kind != options.end() ? kinds.at(kind->second) : LaunchMode::automatic;
    request.processes = number(options, "processes", 1);
    return request;
}

long peak_kib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/// Barriers of all streams, with a counter of the node that shows whether anyone got through too early.
struct BarrierRounds {
    Team& team;
    std::atomic<std::int64_t>& counter;
    int threads, rounds;
    std::atomic<int> early_releases{0}, refused_waits{0};

    void run_stream(int number) {
        const std::int64_t each = static_cast<std::int64_t>(threads) * team.location().local_count;
        for (int round = 0; round < rounds; ++round) {
            counter.fetch_add(1);
            if (!team.wait_for_all(number)) {
                ++refused_waits;
                return;
            }
            if (counter.load() < each * (round + 1)) {
                ++early_releases;
            }
            if (!team.wait_for_node(number)) {
                ++refused_waits;
                return;
            }
        }
    }

    bool run() {
        team.set_streams_per_process(threads);
        std::vector<std::thread> others;
        for (int number = 1; number < threads; ++number) {
            others.emplace_back([this, number] { run_stream(number); });
        }
        run_stream(0);
        for (std::thread& other : others) {
            other.join();
        }
        return early_releases == 0 && refused_waits == 0;
    }
};

std::string unmet_expectations;

void expect(bool truth, const std::string& expectation) {
    if (!truth) {
        unmet_expectations += (unmet_expectations.empty() ? "" : ", ") + expectation;
    }
}

void check_shared(Team& team) {
    // Two pieces in the same order: each process writes its cell, everyone reads all cells.
    team.allocate_shared(10);
    auto* cells = reinterpret_cast<std::atomic<int>*>(team.allocate_shared(sizeof(int) * 4096));
    for (int local_index = 0; local_index < team.location().local_count; ++local_index) {
        expect(cells[local_index].load() == 0 || cells[local_index].load() == local_index + 1,
               "shared memory not zeroed");
    }
    cells[team.location().local_index].store(team.location().local_index + 1);
    team.set_streams_per_process(1);
    expect(team.wait_for_node(0), "meet_node");
    for (int local_index = 0; local_index < team.location().local_count; ++local_index) {
        expect(cells[local_index].load() == local_index + 1, "shared memory is not the same memory");
    }
}

void check_collectives(Team& team) {
    const bool root = team.location().is_root();
    const auto process = static_cast<std::uint64_t>(team.location().process);
    for (const std::size_t length : {std::size_t{0}, std::size_t{5}, std::size_t{65536}, std::size_t{300001}}) {
        const std::string text(length, static_cast<char>('a' + length % 7));
        expect(team.broadcast(root ? text : "not me") == text, "broadcast of " + std::to_string(length));
    }
    expect(team.reduce_maximum(process * 3 + 1) == static_cast<std::uint64_t>(team.location().processes) * 3 - 2,
           "maximum");
    expect(team.reduce_maximum(~std::uint64_t{0} - process) == ~std::uint64_t{0}, "maximum of large values");
    expect(team.all_true(true), "all of true");
    expect(!team.all_true(!root), "all with one false");
    expect(team.all_true(true), "all after a false");
}

int check(Team& team, const Options& options) {
    check_shared(team);
    check_collectives(team);
    BarrierRounds rounds{team, *reinterpret_cast<std::atomic<std::int64_t>*>(team.allocate_shared(64)),
                         number(options, "threads", 1), number(options, "rounds", 20)};
    expect(team.all_true(rounds.run()), "barrier");
    team.align_clocks();
    const std::string own_clock = std::to_string(team.location().node) + "@" + team.location().host + " " +
                                  std::to_string(team.clock_offset_ns()) + " " + std::to_string(team.clock_error_ns());
    const std::string nodes = team.reduce_text(own_clock, [](std::string a, std::string b) { return a + "|" + b; });
    const std::uint64_t peak = team.reduce_maximum(static_cast<std::uint64_t>(peak_kib()));
    const bool fine = team.all_true(unmet_expectations.empty());
    if (!unmet_expectations.empty()) {
        std::fprintf(stderr, "process %d: wrong: %s\n", team.location().process, unmet_expectations.c_str());
    }
    if (team.location().is_root()) {
        std::string map;
        for (const int node : team.location().node_of) {
            map += (map.empty() ? "" : ",") + std::to_string(node);
        }
        std::printf(
            "{\"ok\": %s, \"description\": \"%s\", \"processes\": %d, \"nodes\": %d, \"node_of\": [%s], "
            "\"reduced\": \"%s\", \"peak_kib\": %llu}\n",
            fine ? "true" : "false", team.description().c_str(), team.location().processes, team.location().nodes,
            map.c_str(), nodes.c_str(), static_cast<unsigned long long>(peak));
    }
    team.finish();
    return fine ? 0 : 1;
}

/// One process dies in the middle; all others must come out of the barrier and say so. Into files, since launchers stop
/// forwarding output when a process dies.
int lose(Team& team, const Options& options) {
    team.all_true(true);
    if (team.location().process == number(options, "victim", 1)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        raise(SIGKILL);
    }
    while (team.wait_for_all(0)) {
    }
    const bool all = team.all_true(true);
    const auto folder = options.find("folder");
    if (folder != options.end()) {
        std::ofstream(folder->second + "/" + std::to_string(team.location().process))
            << "{\"lost\": " << team.control().lost_process.load() << ", \"stop\": " << team.control().stop.load()
            << ", \"all\": " << (all ? "true" : "false") << "}\n";
    }
    _exit(3);
}

/// The last process raises the stop flag of its node; how long until each node sees it.
int stop(Team& team) {
    struct Counter {
        std::atomic<std::uint64_t> bytes, operations, padding[6];
    };
    auto* used = reinterpret_cast<std::atomic<int>*>(team.allocate_shared(sizeof(std::atomic<int>)));
    auto* counters = reinterpret_cast<Counter*>(team.allocate_shared(sizeof(Counter) * 64));
    team.register_progress(reinterpret_cast<const std::byte*>(counters), sizeof(Counter), used);
    counters[team.location().local_index].bytes.store(1000);
    counters[team.location().local_index].operations.store(1);
    used->store(team.location().local_count);
    team.wait_for_all(0);
    const auto start = std::chrono::steady_clock::now();
    if (team.location().process == team.location().processes - 1) {
        team.control().stop.store(NodeControl::quit_interrupt);
    }
    const auto waited = [&] {
        return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
    };
    while (team.control().stop.load() == 0 && waited() < 10'000) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const auto took = static_cast<std::uint64_t>(waited());
    // The stop may come before the progress of every node has.
    const auto moved = 1000 * static_cast<std::uint64_t>(team.location().processes - team.location().local_count);
    while (team.location().is_root() && team.remote_progress().bytes < moved && waited() < 10'000) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const Team::RemoteProgress remote = team.remote_progress();
    team.wait_for_all(0);
    const std::uint64_t slowest = team.reduce_maximum(took);
    if (team.location().is_root()) {
        std::printf("{\"slowest_ms\": %llu, \"stop\": %u, \"heard\": %d, \"bytes\": %llu, \"operations\": %llu}\n",
                    static_cast<unsigned long long>(slowest), team.control().stop.load(), remote.nodes,
                    static_cast<unsigned long long>(remote.bytes), static_cast<unsigned long long>(remote.operations));
    }
    team.finish();
    return 0;
}

Options parse(int count, char** arguments) {
    Options options;
    for (int i = 1; i + 1 < count; i += 2) {
        options[arguments[i] + std::strspn(arguments[i], "-")] = arguments[i + 1];
    }
    return options;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        const Options options = parse(count, arguments);
        const auto team = form_team(request_from(options));
        const auto action = options.find("do");
        if (action != options.end() && action->second == "lose") {
            return lose(*team, options);
        }
        if (action != options.end() && action->second == "stop") {
            return stop(*team);
        }
        return check(*team, options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "team-probe: %s\n", error.what());
        return 3;
    }
}
