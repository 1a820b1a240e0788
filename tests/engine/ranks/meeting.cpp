// SPDX-License-Identifier: Apache-2.0
// Processes that find each other by name, the memory they share, and what nodes tell each other.
#include "ranks/arena.hpp"
#include "ranks/node_map.hpp"
#include "ranks/node_team.hpp"
#include "ranks/rendezvous.hpp"
#include "ranks/wire_message.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

using namespace sonde::ranks;

namespace {

std::string unique_name(const char* what) {
    return std::string("test-") + what + "-" + std::to_string(getpid());
}

/// Runs `body(number)` in `count` processes; the sum of their exit codes, plus 1000 for each that was killed.
template <class Body>
int processes(int count, const Body& body) {
    for (int number = 0; number < count; ++number) {
        if (fork() == 0) {
            alarm(30);
            int code = 99;
            try {
                code = body(number);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "process %d: %s\n", number, error.what());
            }
            _exit(code);
        }
    }
    int sum = 0;
    for (int number = 0; number < count; ++number) {
        int status = 0;
        wait(&status);
        sum += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    }
    return sum;
}

Place place_of(int number, int count) {
    Place place;
    place.process = place.local = number;
    place.processes = place.locals = count;
    place.node_of.assign(static_cast<std::size_t>(count), 0);
    place.host = "here";
    return place;
}

}  // namespace

TEST_CASE("processes that were not forked by us meet by a name and share memory") {
    const std::string name = unique_name("meet");
    CHECK(processes(6, [&](int number) {
              // The same name twice: the second meeting must not disturb the first.
              for (int turn = 0; turn < 2; ++turn) {
                  Joined joined = rendezvous({name, number, 6});
                  NodeTeam team(std::move(joined.arena), joined.head, place_of(number, 6), "node (test)");
                  auto* sum = reinterpret_cast<std::atomic<int>*>(team.shared(64));
                  sum->fetch_add(1 << number);
                  if (!team.all(true) || sum->load() != 63) {
                      return 1;
                  }
                  team.finish();
              }
              return 0;
          }) == 0);
}

TEST_CASE("a process that never comes is named after the time-out") {
    const std::string name = unique_name("late");
    CHECK(processes(2, [&](int number) {
              try {
                  rendezvous({name, number, 3, std::chrono::milliseconds(300)});
              } catch (const TeamError& error) {
                  const std::string text = error.what();
                  const bool said = number == 0 ? text.find("local process 2 is missing") != std::string::npos : true;
                  return said && text.find("--mpi") != std::string::npos ? 0 : 1;
              }
              return number == 0 ? 2 : 0;
          }) == 0);
}

TEST_CASE("without the one who hands out, the others give up") {
    CHECK_THROWS_AS(rendezvous({unique_name("alone"), 1, 2, std::chrono::milliseconds(50)}), TeamError);
}

TEST_CASE("pieces of an arena do not overlap and can be found again") {
    Arena arena = Arena::create();
    std::byte* one = arena.take(10);
    std::byte* two = arena.take(5000);
    one[9] = std::byte{1};
    CHECK(two[0] == std::byte{0});
    CHECK(arena.place_of(one + 9) == 9);
    CHECK(arena.place_of(two + 5) == 4096 + 5);
    CHECK(arena.taken() == 4096 + 8192);
    CHECK(arena.place_of(&arena) == arena.taken());
}

TEST_CASE("an arena respects the limit on file sizes instead of dying of it") {
    CHECK(processes(1, [](int) {
              const rlimit limit{128U << 20U, 128U << 20U};
              setrlimit(RLIMIT_FSIZE, &limit);
              Arena arena = Arena::create();
              arena.take(1U << 20U);
              try {
                  arena.take(1U << 30U);
              } catch (const TeamError& error) {
                  return std::string(error.what()).find("ulimit -f") != std::string::npos ? 0 : 1;
              }
              return 2;
          }) == 0);
}

TEST_CASE("a stop counts for the nodes of the same epoch only") {
    Tally tally(4);
    Report late{1, 2, {}, 10, 1};
    late.signals.epoch = 7;
    late.signals.stop = 2;
    tally.note(late, 0);
    CHECK(tally.verdict(7).stop == 2);
    CHECK(tally.verdict(8).stop == 0);
    late.signals.stop = 0;
    tally.note(late, 1);
    CHECK(tally.verdict(7).stop == 0);
}

TEST_CASE("the first to finish is heard, a dead leader is heard in every epoch") {
    Tally tally(3);
    Report one{1, 1, {}, 0, 0};
    one.signals.epoch = 4;
    one.signals.first_done = 1;
    tally.note(one, 0);
    CHECK(tally.verdict(4).first_done == 1);
    CHECK(tally.verdict(5).first_done == 0);
    Report dead{1, 2, {}, 0, 0};
    dead.signals.leader_gone = 1;
    dead.signals.lost_process = 12;
    tally.note(dead, 0);
    CHECK(tally.verdict(99).leader_gone == 1);
    CHECK(tally.verdict(99).lost_process == 12);
}

TEST_CASE("progress adds up the others, and forgets who is silent") {
    Tally tally(4);
    for (int node = 0; node < 4; ++node) {
        Report report{1, node, {}, 100, 10};
        report.signals.epoch = node == 3 ? 1 : 2;
        tally.note(report, 0);
    }
    const Tally::Progress now = tally.progress(2, 0, 1'000'000'000);
    CHECK(now.nodes == 3);
    CHECK(now.bytes == 200);
    CHECK(now.operations == 20);
    CHECK(tally.progress(2, 0, 10'000'000'000).nodes == 0);
    tally.note(Report{1, 17, {}, 1, 1}, 0);
    tally.note(Report{1, -1, {}, 1, 1}, 0);
    CHECK(tally.progress(2, 0, 0).bytes == 200);
}

TEST_CASE("a node that was heard once and is silent for too long is given up, with the process that led it") {
    Tally tally(4);
    Report one{1, 1, {}, 0, 0, 8};
    tally.note(one, 0);
    tally.give_up_silent(1'000, 10'000, 1'000);
    for (std::int64_t now = 2'000; now <= 10'000; now += 1'000) {
        tally.give_up_silent(now, 10'000, 1'000);
        CHECK(tally.verdict(0).leader_gone == 0);  // nodes 2 and 3 were never heard: perhaps no datagram gets through
    }
    tally.give_up_silent(10'900, 10'000, 1'000);
    CHECK(tally.verdict(5).leader_gone == Signals::leader_silent);
    CHECK(tally.verdict(5).lost_process == 8);
    tally.note(one, 11'000);  // too late: the others have gone on without it
    CHECK(tally.verdict(5).leader_gone == Signals::leader_silent);
}

TEST_CASE("a hub that slept blames nobody for what it did not hear") {
    Tally tally(2);
    tally.note(Report{1, 1, {}, 0, 0, 4}, 1'000);
    tally.give_up_silent(1'000, 10'000, 1'000);
    tally.give_up_silent(60'000, 10'000, 1'000);  // stopped and continued
    CHECK(tally.verdict(0).leader_gone == 0);
    for (std::int64_t now = 61'000; now <= 72'000; now += 1'000) {
        tally.give_up_silent(now, 10'000, 1'000);
    }
    CHECK(tally.verdict(0).leader_gone == Signals::leader_silent);
}

TEST_CASE("engines of two versions are told apart by host") {
    std::vector<Identity> all(4, Identity::mine());
    CHECK(mixed_engines(all).empty());
    for (std::size_t i = 2; i < 4; ++i) {
        all[i].version = {"9.9"};
        all[i].host = {"n2"};
        all[i].machine += 1;
    }
    CHECK(mixed_engines(all).rfind("n2 would run engine 9.9, and ", 0) == 0);
}
