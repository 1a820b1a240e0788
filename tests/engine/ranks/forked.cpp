// SPDX-License-Identifier: Apache-2.0
// Teams of processes that the engine forks: what they share, how they meet, how they end.
#include "forked_team.hpp"
#include "ranks/fork.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

using namespace sonde;
using ranks::NodeControl;
using ranks::Team;
using tests::in_team;

namespace {

/// Every stream passes `rounds` barriers; nobody may pass the n-th before all have arrived at it.
int cross(Team& team, int threads, int rounds) {
    auto& arrived = *reinterpret_cast<std::atomic<int>*>(team.allocate_shared(sizeof(std::atomic<int>)));
    team.set_streams_per_process(threads);
    const int all = threads * team.location().local_count;
    std::atomic<int> wrong{0};
    const auto stream = [&](int number) {
        for (int round = 0; round < rounds; ++round) {
            ++arrived;
            wrong += team.wait_for_all(number) ? 0 : 1;
            wrong += arrived.load() == all * (round + 1) ? 0 : 1;
            wrong += team.wait_for_node(number) ? 0 : 1;
        }
    };
    std::vector<std::thread> others;
    for (int number = 1; number < threads; ++number) {
        others.emplace_back(stream, number);
    }
    stream(0);
    for (std::thread& other : others) {
        other.join();
    }
    return wrong == 0 ? 0 : 1;
}

}  // namespace

TEST_CASE("barrier_releases_none_before_all_arrive") {
    CHECK(in_team(1, [](Team& team) { return cross(team, 1, 2000); }) == 0);
    CHECK(in_team(1, [](Team& team) { return cross(team, 4, 1000); }) == 0);
    CHECK(in_team(4, [](Team& team) { return cross(team, 1, 1000); }) == 0);
    CHECK(in_team(3, [](Team& team) { return cross(team, 3, 500); }) == 0);
    CHECK(in_team(16, [](Team& team) { return cross(team, 2, 50); }) == 0);
}

TEST_CASE("stream_count_may_change_between_barriers") {
    CHECK(in_team(3, [](Team& team) {
              for (const int threads : {1, 4, 2, 1, 3}) {
                  if (cross(team, threads, 20) != 0) {
                      return 1;
                  }
              }
              return 0;
          }) == 0);
}

TEST_CASE("forked_locations_are_on_one_node") {
    CHECK(in_team(3, [](Team& team) {
              const ranks::ProcessLocation& location = team.location();
              const bool right = location.processes == 3 && location.local_count == 3 && location.nodes == 1 &&
                                 location.node == 0 && location.process == location.local_index &&
                                 location.node_of == std::vector<int>{0, 0, 0} &&
                                 location.is_root() == (location.process == 0) && !location.host.empty() &&
                                 team.description() == "forked" && team.mpi_module() == nullptr;
              return right ? 0 : 1;
          }) == 0);
}

TEST_CASE("shared_memory_is_zeroed_aligned_and_common") {
    CHECK(in_team(4, [](Team& team) {
              constexpr std::size_t sizes[] = {1, 5000, 1U << 20U, 64};
              std::vector<std::atomic<std::uint32_t>*> pieces;
              for (const std::size_t size : sizes) {
                  std::byte* piece = team.allocate_shared(size);
                  if (reinterpret_cast<std::uintptr_t>(piece) % 4096 != 0 ||
                      std::any_of(piece, piece + size, [](std::byte value) { return value != std::byte{0}; })) {
                      return 1;
                  }
                  pieces.push_back(reinterpret_cast<std::atomic<std::uint32_t>*>(piece));
                  // Before anybody writes, all must have looked.
                  team.all_true(true);
              }
              for (std::size_t i = 0; i < pieces.size(); ++i) {
                  pieces[i]->fetch_add(static_cast<std::uint32_t>(i + 1) << (8 * team.location().local_index));
              }
              team.all_true(true);
              for (std::size_t i = 0; i < pieces.size(); ++i) {
                  if (pieces[i]->load() != static_cast<std::uint32_t>(i + 1) * 0x01010101U) {
                      return 2;
                  }
              }
              return 0;
          }) == 0);
}

TEST_CASE("broadcast_delivers_texts_of_any_length") {
    CHECK(in_team(4, [](Team& team) {
              const bool root = team.location().is_root();
              for (const std::size_t length : {0, 1, 65535, 65536, 65537, 400000, 0, 3}) {
                  const std::string text(length, static_cast<char>('a' + length % 23));
                  if (team.broadcast(root ? text : "something else") != text) {
                      return 1;
                  }
              }
              return 0;
          }) == 0);
}

TEST_CASE("votes_and_maxima_count_all_processes") {
    CHECK(in_team(5, [](Team& team) {
              const auto me = static_cast<std::uint64_t>(team.location().process);
              for (std::uint64_t round = 0; round < 500; ++round) {
                  const bool succeeded = round % 5 != me;
                  if (team.reduce_maximum(round * 100 + me) != round * 100 + 4 || team.all_true(succeeded) ||
                      !team.all_true(true)) {
                      return 1;
                  }
              }
              return team.reduce_maximum(~std::uint64_t{0}) == ~std::uint64_t{0} ? 0 : 2;
          }) == 0);
}

TEST_CASE("reduce_on_one_node_returns_leader_text") {
    CHECK(in_team(2, [](Team& team) {
              const auto join = [](std::string a, std::string b) { return a + b; };
              const std::string result = team.reduce_text("mine", join);
              return result == (team.location().is_root() ? "mine" : "") ? 0 : 1;
          }) == 0);
}

TEST_CASE("killed_process_ends_barrier_and_is_reported") {
    for (const int victim : {0, 2}) {
        CAPTURE(victim);
        // The survivors end with 0 when they saw what they should; the killed one makes the parent say 1.
        std::array<int, 2> report{};
        REQUIRE(pipe(report.data()) == 0);
        const int code = in_team(4, [&](Team& team) {
            team.wait_for_all(0);
            if (team.location().process == victim) {
                raise(SIGKILL);
            }
            while (team.wait_for_all(0)) {
            }
            const bool knows = team.control().lost_process.load() == victim &&
                               team.control().stop.load() == NodeControl::quit_peer_lost && !team.all_true(true) &&
                               !team.wait_for_node(0);
            const char word = knows ? 'y' : 'n';
            return write(report[1], &word, 1) == 1 ? 0 : 1;
        });
        close(report[1]);
        std::array<char, 8> text{};
        CHECK(read(report[0], text.data(), text.size()) == 3);
        close(report[0]);
        CHECK(std::count(text.begin(), text.end(), 'y') == 3);
        CHECK(code == 1);
    }
}

TEST_CASE("process_without_finish_counts_as_lost") {
    CHECK(in_team(3, [](Team& team) {
              team.wait_for_all(0);
              if (team.location().process == 1) {
                  return 4;
              }
              while (team.wait_for_all(0)) {
              }
              return team.control().lost_process.load() == 1 ? 4 : 2;
          }) == 4);
}

TEST_CASE("broadcast_of_dead_sender_fails_without_hang") {
    CHECK(in_team(2, [](Team& team) {
              team.wait_for_all(0);
              if (team.location().is_root()) {
                  return 4;
              }
              try {
                  team.broadcast("");
              } catch (const ranks::TeamError&) {
                  return 4;
              }
              return 2;
          }) == 4);
}

TEST_CASE("interruption_stays_reason_after_lost_process") {
    CHECK(in_team(2, [](Team& team) {
              team.control().stop.store(NodeControl::quit_interrupt);
              team.wait_for_all(0);
              if (team.location().process == 1) {
                  return 5;
              }
              while (team.wait_for_all(0)) {
              }
              return team.control().stop.load() == NodeControl::quit_interrupt ? 5 : 2;
          }) == 5);
}

TEST_CASE("parent_exits_with_worst_worker_code") {
    using ranks::select_worst_status;
    CHECK(select_worst_status(std::array{0, 0, 0}) == 0);
    CHECK(select_worst_status(std::array{0, 5, 0}) == 5);
    CHECK(select_worst_status(std::array{5, 4, 0}) == 4);
    CHECK(select_worst_status(std::array{1, 4, 5}) == 1);
    CHECK(select_worst_status(std::array{3, 1, 4}) == 3);
    CHECK(select_worst_status(std::array{3, 2, 1}) == 2);
    CHECK(select_worst_status(std::array{0, 134}) == 3);
    CHECK(in_team(3, [](Team& team) {
              team.finish();
              return team.location().process == 1 ? 4 : 0;
          }) == 4);
}

TEST_CASE("parent_forwards_signals_to_workers") {
    for (const int signal : {SIGTERM, SIGINT}) {
        std::array<int, 2> ready{};
        REQUIRE(pipe(ready.data()) == 0);
        const pid_t parent = tests::start_team(3, [&](Team& team) {
            static std::atomic<int> got{0};
            std::signal(SIGTERM, [](int number) { got = number; });
            std::signal(SIGINT, [](int number) { got = number; });
            team.wait_for_all(0);
            if (team.location().is_root() && write(ready[1], "r", 1) != 1) {
                return 1;
            }
            while (got == 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            team.finish();
            return got == signal ? 5 : 1;
        });
        char word = 0;
        REQUIRE(read(ready[0], &word, 1) == 1);
        kill(parent, signal);
        CHECK(tests::status_of(parent) == 5);
        close(ready[0]);
        close(ready[1]);
    }
}

TEST_CASE("worker_killed_by_forwarded_signal_counts_as_interrupted") {
    const pid_t parent = tests::start_team(2, [](Team& team) {
        team.wait_for_all(0);
        pause();
        return 0;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(parent, SIGTERM);
    CHECK(tests::status_of(parent) == 5);
}

TEST_CASE("killed_parent_ends_workers") {
    std::array<int, 2> report{};
    REQUIRE(pipe(report.data()) == 0);
    const pid_t parent = tests::start_team(2, [&](Team& team) {
        static std::atomic<bool> is_requested{false};
        std::signal(SIGTERM, [](int) { is_requested = true; });
        team.wait_for_all(0);
        if (write(report[1], "r", 1) != 1) {
            return 1;
        }
        while (!is_requested) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return write(report[1], "t", 1) == 1 ? 5 : 1;
    });
    close(report[1]);
    std::string heard;
    for (char word = 0; heard.size() < 2 && read(report[0], &word, 1) == 1;) {
        heard += word;
    }
    kill(parent, SIGKILL);
    CHECK(tests::status_of(parent) == 1000 + SIGKILL);
    // The pipe ends when the last worker has ended.
    for (char word = 0; read(report[0], &word, 1) == 1;) {
        heard += word;
    }
    close(report[0]);
    CHECK(heard == "rrtt");
}

TEST_CASE("too_many_processes_are_refused_with_the_limit") {
    constexpr std::uint64_t gibi = 1ULL << 30U;
    CHECK(ranks::explain_process_shortage(65'000, {32'000, 64 * gibi}).find("32000 process numbers") !=
          std::string::npos);
    CHECK(ranks::explain_process_shortage(65'000, {4'000'000, 8 * gibi}).find("8192 MiB are available") !=
          std::string::npos);
    CHECK(ranks::explain_process_shortage(65'000, {4'000'000, 64 * gibi}).empty());
    CHECK(ranks::explain_process_shortage(65'000, {0, 0}).empty());  // what is not known refuses nothing
    const ranks::ProcessCapacity here = ranks::read_process_capacity();
    CHECK(here.process_ids > 0);
    CHECK(here.memory > 0);
    CHECK(ranks::explain_process_shortage(2, here).empty());
    CHECK_THROWS_AS(ranks::fork_team(1 << 30), ranks::TeamError);
}
