// SPDX-License-Identifier: Apache-2.0
// Processes that find each other by name, the memory they share, and what nodes tell each other.
#include "ranks/rendezvous.hpp"
#include "ranks/arena.hpp"
#include "ranks/node_map.hpp"
#include "ranks/node_team.hpp"
#include "ranks/team_error.hpp"
#include "ranks/wire_message.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <cstddef>

using namespace sonde::ranks;

namespace {

std::string unique_name(const char* purpose) {
    return std::string("test-") + purpose + "-" + std::to_string(getpid());
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

ProcessLocation file_offset(int number, int count) {
    ProcessLocation location;
    location.process = location.local_index = number;
    location.processes = location.local_count = count;
    location.node_of.assign(static_cast<std::size_t>(count), 0);
    location.host = "here";
    return location;
}

}  // namespace

TEST_CASE("unrelated_processes_share_memory_after_rendezvous") {
    const std::string name = unique_name("meet");
    CHECK(processes(6, [&](int number) {
              // The same name twice: the second meeting must not disturb the first.
              for (int turn = 0; turn < 2; ++turn) {
                  RendezvousResult joined = rendezvous({name, number, 6});
                  NodeTeam team(std::move(joined.arena), joined.head, file_offset(number, 6), "node (test)");
                  auto* sum = reinterpret_cast<std::atomic<int>*>(team.allocate_shared(64));
                  sum->fetch_add(1 << number);
                  if (!team.all_true(true) || sum->load() != 63) {
                      return 1;
                  }
                  team.finish();
              }
              return 0;
          }) == 0);
}

TEST_CASE("address_bound_by_another_user_is_passed_over") {
    if (geteuid() != 0) {
        MESSAGE("not run: only root can act as a second user");
        return;
    }
    constexpr uid_t neighbor = 54321;
    const std::string name = unique_name("squatted");
    const std::string address = "sonde/" + std::to_string(getuid()) + "/" + name;
    sockaddr_un squatted_name{};
    squatted_name.sun_family = AF_UNIX;
    address.copy(squatted_name.sun_path + 1, address.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
    std::array<int, 2> ready{};
    REQUIRE(pipe(ready.data()) == 0);
    const pid_t squatter = fork();
    if (squatter == 0) {
        // Listens, and accepts nobody: its queue is full at once.
        const int listener = setuid(neighbor) == 0 ? socket(AF_UNIX, SOCK_SEQPACKET, 0) : -1;
        const bool done = bind(listener, reinterpret_cast<const sockaddr*>(&squatted_name), length) == 0 &&
                          listen(listener, 0) == 0 && write(ready[1], "r", 1) == 1;
        done ? pause() : 0;
        _exit(1);
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    CHECK(processes(4, [&](int number) {
              const RendezvousResult joined = rendezvous({name, number, 4, std::chrono::milliseconds(10'000)});
              return joined.head != nullptr ? 0 : 1;
          }) == 0);
    kill(squatter, SIGKILL);
    waitpid(squatter, nullptr, 0);
    close(ready[0]);
    close(ready[1]);
}

TEST_CASE("missing_process_is_reported_after_timeout") {
    const std::string name = unique_name("late");
    CHECK(processes(2, [&](int number) {
              try {
                  rendezvous({name, number, 3, std::chrono::milliseconds(300)});
              } catch (const TeamError& error) {
                  const std::string text = error.what();
                  const bool is_reported =
                      number == 0 ? text.find("local process 2 is missing") != std::string::npos : true;
                  return is_reported && text.find("--mpi") != std::string::npos ? 0 : 1;
              }
              return number == 0 ? 2 : 0;
          }) == 0);
}

TEST_CASE("rendezvous_without_leader_times_out") {
    CHECK_THROWS_AS(rendezvous({unique_name("alone"), 1, 2, std::chrono::milliseconds(50)}), TeamError);
}

TEST_CASE("arena_pieces_do_not_overlap_and_have_offsets") {
    Arena arena = Arena::create();
    std::byte* block = arena.allocate(10);
    std::byte* two = arena.allocate(5000);
    block[9] = std::byte{1};
    CHECK(two[0] == std::byte{0});
    CHECK(arena.file_offset(block + 9) == 9);
    CHECK(arena.file_offset(two + 5) == 4096 + 5);
    CHECK(arena.allocated_bytes() == 4096 + 8192);
    CHECK(arena.file_offset(&arena) == arena.allocated_bytes());
}

TEST_CASE("arena_respects_file_size_limit") {
    CHECK(processes(1, [](int) {
              const rlimit limit{128U << 20U, 128U << 20U};
              setrlimit(RLIMIT_FSIZE, &limit);
              Arena arena = Arena::create();
              arena.allocate(1U << 20U);
              try {
                  arena.allocate(1U << 30U);
              } catch (const TeamError& error) {
                  return std::string(error.what()).find("ulimit -f") != std::string::npos ? 0 : 1;
              }
              return 2;
          }) == 0);
}

TEST_CASE("stop_counts_within_one_epoch") {
    ReportTable tally(4);
    NodeReport late{.node = 2};
    late.signals.epoch = 7;
    late.signals.stop = 2;
    tally.add_report(late, 0);
    CHECK(tally.combine_signals(7).stop == 2);
    CHECK(tally.combine_signals(8).stop == 0);
    late.signals.stop = 0;
    tally.add_report(late, 1);
    CHECK(tally.combine_signals(7).stop == 0);
}

TEST_CASE("dead_leader_counts_in_every_epoch") {
    ReportTable tally(3);
    NodeReport report{.node = 1};
    report.signals.epoch = 4;
    report.signals.first_done = 1;
    tally.add_report(report, 0);
    CHECK(tally.combine_signals(4).first_done == 1);
    CHECK(tally.combine_signals(5).first_done == 0);
    NodeReport dead{.node = 2};
    dead.signals.leader_gone = 1;
    dead.signals.lost_process = 12;
    tally.add_report(dead, 0);
    CHECK(tally.combine_signals(99).leader_gone == 1);
    CHECK(tally.combine_signals(99).lost_process == 12);
}

TEST_CASE("progress_sums_other_nodes_and_drops_silent_nodes") {
    ReportTable tally(4);
    for (int node = 0; node < 4; ++node) {
        NodeReport report{.node = node, .bytes = 100, .operations = 10};
        report.signals.epoch = node == 3 ? 1 : 2;
        tally.add_report(report, 0);
    }
    const ReportTable::OtherNodesProgress now = tally.sum_progress(2, 0, 1'000'000'000);
    CHECK(now.nodes == 3);
    CHECK(now.bytes == 200);
    CHECK(now.operations == 20);
    CHECK(tally.sum_progress(2, 0, 10'000'000'000).nodes == 0);
    tally.add_report(NodeReport{.node = 17, .bytes = 1, .operations = 1}, 0);
    tally.add_report(NodeReport{.node = -1, .bytes = 1, .operations = 1}, 0);
    CHECK(tally.sum_progress(2, 0, 0).bytes == 200);
}

TEST_CASE("silent_node_is_lost_with_its_leader_process") {
    ReportTable tally(4);
    NodeReport report{.node = 1, .process = 8};
    tally.add_report(report, 0);
    tally.mark_silent_nodes(1'000, 10'000, 1'000);
    for (std::int64_t now = 2'000; now <= 10'000; now += 1'000) {
        tally.mark_silent_nodes(now, 10'000, 1'000);
        CHECK(tally.combine_signals(0).leader_gone ==
              0);  // nodes 2 and 3 were never heard: perhaps no datagram gets through
    }
    tally.mark_silent_nodes(10'900, 10'000, 1'000);
    CHECK(tally.combine_signals(5).leader_gone == NodeSignals::leader_silent);
    CHECK(tally.combine_signals(5).lost_process == 8);
    tally.add_report(report, 11'000);  // too late: the others have gone on without it
    CHECK(tally.combine_signals(5).leader_gone == NodeSignals::leader_silent);
}

TEST_CASE("sleeping_hub_marks_no_node_as_lost") {
    ReportTable tally(2);
    tally.add_report(NodeReport{.node = 1, .process = 4}, 1'000);
    tally.mark_silent_nodes(1'000, 10'000, 1'000);
    tally.mark_silent_nodes(60'000, 10'000, 1'000);  // stopped and continued
    CHECK(tally.combine_signals(0).leader_gone == 0);
    for (std::int64_t now = 61'000; now <= 72'000; now += 1'000) {
        tally.mark_silent_nodes(now, 10'000, 1'000);
    }
    CHECK(tally.combine_signals(0).leader_gone == NodeSignals::leader_silent);
}

TEST_CASE("hub_that_lost_datagrams_marks_no_node_as_lost") {
    ReportTable tally(2);
    tally.add_report(NodeReport{.node = 1, .process = 4}, 1'000);
    tally.mark_silent_nodes(1'000, 10'000, 1'000);
    for (std::int64_t now = 2'000; now <= 60'000; now += 1'000) {
        tally.mark_silent_nodes(now, 10'000, 1'000, true);
    }
    CHECK(tally.combine_signals(0).leader_gone == 0);
    for (std::int64_t now = 61'000; now <= 72'000; now += 1'000) {
        tally.mark_silent_nodes(now, 10'000, 1'000);
    }
    CHECK(tally.combine_signals(0).leader_gone == NodeSignals::leader_silent);
}

TEST_CASE("engine_version_mismatch_names_hosts") {
    std::vector<ProcessIdentity> all(4, ProcessIdentity::of_this_process());
    CHECK(explain_version_mismatch(all).empty());
    for (std::size_t i = 2; i < 4; ++i) {
        all[i].version = {"9.9"};
        all[i].host = {"n2"};
        all[i].machine += 1;
    }
    CHECK(explain_version_mismatch(all).rfind("n2 would run engine 9.9, and ", 0) == 0);
}
