// SPDX-License-Identifier: Apache-2.0
// Teams of processes that the engine forks: what they share, how they meet, how they end.
#include "in_team.hpp"
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
    auto& arrived = *reinterpret_cast<std::atomic<int>*>(team.shared(sizeof(std::atomic<int>)));
    team.arrange(threads);
    const int all = threads * team.place().locals;
    std::atomic<int> wrong{0};
    const auto stream = [&](int number) {
        for (int round = 0; round < rounds; ++round) {
            ++arrived;
            wrong += team.meet(number) ? 0 : 1;
            wrong += arrived.load() == all * (round + 1) ? 0 : 1;
            wrong += team.meet_node(number) ? 0 : 1;
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

TEST_CASE("nobody leaves a barrier before all have come") {
    CHECK(in_team(1, [](Team& team) { return cross(team, 1, 2000); }) == 0);
    CHECK(in_team(1, [](Team& team) { return cross(team, 4, 1000); }) == 0);
    CHECK(in_team(4, [](Team& team) { return cross(team, 1, 1000); }) == 0);
    CHECK(in_team(3, [](Team& team) { return cross(team, 3, 500); }) == 0);
    CHECK(in_team(16, [](Team& team) { return cross(team, 2, 50); }) == 0);
}

TEST_CASE("the number of streams may change between barriers") {
    CHECK(in_team(3, [](Team& team) {
              for (const int threads : {1, 4, 2, 1, 3}) {
                  if (cross(team, threads, 20) != 0) {
                      return 1;
                  }
              }
              return 0;
          }) == 0);
}

TEST_CASE("places are those of one node") {
    CHECK(in_team(3, [](Team& team) {
              const ranks::Place& place = team.place();
              const bool right = place.processes == 3 && place.locals == 3 && place.nodes == 1 && place.node == 0 &&
                                 place.process == place.local && place.node_of == std::vector<int>{0, 0, 0} &&
                                 place.root() == (place.process == 0) && !place.host.empty() &&
                                 team.description() == "forked" && team.mpi() == nullptr;
              return right ? 0 : 1;
          }) == 0);
}

TEST_CASE("shared memory is zeroed, page aligned, and the same for equal call numbers") {
    CHECK(in_team(4, [](Team& team) {
              constexpr std::size_t sizes[] = {1, 5000, 1U << 20U, 64};
              std::vector<std::atomic<std::uint32_t>*> pieces;
              for (const std::size_t size : sizes) {
                  std::byte* piece = team.shared(size);
                  if (reinterpret_cast<std::uintptr_t>(piece) % 4096 != 0 ||
                      std::any_of(piece, piece + size, [](std::byte value) { return value != std::byte{0}; })) {
                      return 1;
                  }
                  pieces.push_back(reinterpret_cast<std::atomic<std::uint32_t>*>(piece));
                  // Before anybody writes, all must have looked.
                  team.all(true);
              }
              for (std::size_t i = 0; i < pieces.size(); ++i) {
                  pieces[i]->fetch_add(static_cast<std::uint32_t>(i + 1) << (8 * team.place().local));
              }
              team.all(true);
              for (std::size_t i = 0; i < pieces.size(); ++i) {
                  if (pieces[i]->load() != static_cast<std::uint32_t>(i + 1) * 0x01010101U) {
                      return 2;
                  }
              }
              return 0;
          }) == 0);
}

TEST_CASE("texts of any length reach every process, one after the other") {
    CHECK(in_team(4, [](Team& team) {
              const bool root = team.place().root();
              for (const std::size_t length : {0, 1, 65535, 65536, 65537, 400000, 0, 3}) {
                  const std::string text(length, static_cast<char>('a' + length % 23));
                  if (team.broadcast(root ? text : "something else") != text) {
                      return 1;
                  }
              }
              return 0;
          }) == 0);
}

TEST_CASE("votes and maxima count everybody, time after time") {
    CHECK(in_team(5, [](Team& team) {
              const auto me = static_cast<std::uint64_t>(team.place().process);
              for (std::uint64_t round = 0; round < 500; ++round) {
                  const bool mine = round % 5 != me;
                  if (team.maximum(round * 100 + me) != round * 100 + 4 || team.all(mine) || !team.all(true)) {
                      return 1;
                  }
              }
              return team.maximum(~std::uint64_t{0}) == ~std::uint64_t{0} ? 0 : 2;
          }) == 0);
}

TEST_CASE("on one node the text of its leader is the result") {
    CHECK(in_team(2, [](Team& team) {
              const auto join = [](std::string a, std::string b) { return a + b; };
              const std::string result = team.reduce("mine", join);
              return result == (team.place().root() ? "mine" : "") ? 0 : 1;
          }) == 0);
}

TEST_CASE("when a process is killed, all others leave the barrier and know who it was") {
    for (const int victim : {0, 2}) {
        CAPTURE(victim);
        // The survivors end with 0 when they saw what they should; the killed one makes the parent say 1.
        std::array<int, 2> report{};
        REQUIRE(pipe(report.data()) == 0);
        const int code = in_team(4, [&](Team& team) {
            team.meet(0);
            if (team.place().process == victim) {
                raise(SIGKILL);
            }
            while (team.meet(0)) {
            }
            const bool knows = team.control().lost_process.load() == victim &&
                               team.control().stop.load() == NodeControl::quit_peer_lost && !team.all(true) &&
                               !team.meet_node(0);
            const char word = knows ? 'y' : 'n';
            return write(report[1], &word, 1) == 1 ? 0 : 1;
        });
        close(report[1]);
        std::array<char, 8> words{};
        CHECK(read(report[0], words.data(), words.size()) == 3);
        close(report[0]);
        CHECK(std::count(words.begin(), words.end(), 'y') == 3);
        CHECK(code == 1);
    }
}

TEST_CASE("a process that ends without finish() counts as lost, too") {
    CHECK(in_team(3, [](Team& team) {
              team.meet(0);
              if (team.place().process == 1) {
                  return 4;
              }
              while (team.meet(0)) {
              }
              return team.control().lost_process.load() == 1 ? 4 : 2;
          }) == 4);
}

TEST_CASE("a broadcast that its speaker did not live to make is an error, not a hang") {
    CHECK(in_team(2, [](Team& team) {
              team.meet(0);
              if (team.place().root()) {
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

TEST_CASE("an interruption stays the reason even when a process is lost afterwards") {
    CHECK(in_team(2, [](Team& team) {
              team.control().stop.store(NodeControl::quit_interrupt);
              team.meet(0);
              if (team.place().process == 1) {
                  return 5;
              }
              while (team.meet(0)) {
              }
              return team.control().stop.load() == NodeControl::quit_interrupt ? 5 : 2;
          }) == 5);
}

TEST_CASE("the parent exits with the worst code of its workers") {
    using ranks::worst_status;
    CHECK(worst_status(std::array{0, 0, 0}) == 0);
    CHECK(worst_status(std::array{0, 5, 0}) == 5);
    CHECK(worst_status(std::array{5, 4, 0}) == 4);
    CHECK(worst_status(std::array{1, 4, 5}) == 1);
    CHECK(worst_status(std::array{3, 1, 4}) == 3);
    CHECK(worst_status(std::array{3, 2, 1}) == 2);
    CHECK(worst_status(std::array{0, 134}) == 3);
    CHECK(in_team(3, [](Team& team) {
              team.finish();
              return team.place().process == 1 ? 4 : 0;
          }) == 4);
}

TEST_CASE("signals sent to the parent reach the workers") {
    for (const int signal : {SIGTERM, SIGINT}) {
        std::array<int, 2> ready{};
        REQUIRE(pipe(ready.data()) == 0);
        const pid_t parent = tests::start_team(3, [&](Team& team) {
            static std::atomic<int> got{0};
            std::signal(SIGTERM, [](int number) { got = number; });
            std::signal(SIGINT, [](int number) { got = number; });
            team.meet(0);
            if (team.place().root() && write(ready[1], "r", 1) != 1) {
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

TEST_CASE("workers that die of the signal that was passed on count as interrupted") {
    const pid_t parent = tests::start_team(2, [](Team& team) {
        team.meet(0);
        pause();
        return 0;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(parent, SIGTERM);
    CHECK(tests::status_of(parent) == 5);
}

TEST_CASE("when the parent is killed, the workers are asked to end") {
    std::array<int, 2> report{};
    REQUIRE(pipe(report.data()) == 0);
    const pid_t parent = tests::start_team(2, [&](Team& team) {
        static std::atomic<bool> asked{false};
        std::signal(SIGTERM, [](int) { asked = true; });
        team.meet(0);
        if (write(report[1], "r", 1) != 1) {
            return 1;
        }
        while (!asked) {
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

TEST_CASE("more processes than a node can hold are refused with the number that it can") {
    constexpr std::uint64_t gibi = 1ULL << 30U;
    CHECK(ranks::why_too_many(65'000, {32'000, 64 * gibi}).find("32000 process numbers") != std::string::npos);
    CHECK(ranks::why_too_many(65'000, {4'000'000, 8 * gibi}).find("8192 MiB are available") != std::string::npos);
    CHECK(ranks::why_too_many(65'000, {4'000'000, 64 * gibi}).empty());
    CHECK(ranks::why_too_many(65'000, {0, 0}).empty());  // what is not known refuses nothing
    const ranks::ProcessRoom here = ranks::process_room();
    CHECK(here.numbers > 0);
    CHECK(here.memory > 0);
    CHECK(ranks::why_too_many(2, here).empty());
    CHECK_THROWS_AS(ranks::fork_team(1 << 30), ranks::TeamError);
}
