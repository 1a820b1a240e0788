// SPDX-License-Identifier: Apache-2.0
// Tests that descriptors are buffered after enough calls, and not if another process may share them.
#include "files/candidates.hpp"

#include "buffered.hpp"
#include "guards/lease_thread.hpp"
#include "model/state.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

using namespace under_test;
using buffer::CallRoute;

namespace {

constexpr const char* chosen = "*:auto,%process:age=600:threads=0";
constexpr const char* named_rule = "*:size=4k:count=4,%process:age=600:threads=0";

/// Waits until the kernel has removed the threads that earlier tests ended. A thread that was joined is still counted
/// for a moment, and the library would take it for a second thread of the program.
void wait_for_ended_threads() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto count_threads = [] {
        const std::filesystem::directory_iterator threads("/proc/self/task");
        return static_cast<std::uint64_t>(std::distance(begin(threads), end(threads)));
    };
    while (count_threads() > 1 + buffer::count_worker_threads() + (buffer::has_lease_thread() ? 1 : 0)) {
        REQUIRE(std::chrono::steady_clock::now() < deadline);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

/// A candidate: a descriptor that was opened with the library loaded, and its file.
struct Candidate {
    Folder folder;
    std::string path = folder.path + "/data";
    int fd;
    explicit Candidate(const char* params, int flags = O_RDWR | O_CREAT, bool learns_anew = true) {
        use(params);
        wait_for_ended_threads();
        for (int i = 0; i < 8 && learns_anew; ++i) {
            buffer::record_benefit(1'000'000);  // whatever files of other tests gained
        }
        fd = open(path.c_str(), flags, 0644);
        buffer::consider_opened_descriptor(fd, flags, path.c_str());
    }
    ~Candidate() {
        buffer::detach_descriptor(fd);
        buffer::forget_candidate(fd);
        close(fd);
    }
    /// Returns the number of calls until the descriptor is registered, at most `most`.
    int calls_until_buffered(int most) const {
        int calls = 0;
        while (calls < most && buffer::counts_calls(fd) && buffer::count_candidate_call(fd) != CallRoute::Buffer) {
            ++calls;
        }
        return calls;
    }
};

}  // namespace

TEST_CASE("fast_file_is_adopted_after_256_calls") {
    const Candidate candidate(chosen);
    CHECK_FALSE(buffer::is_registered_descriptor(candidate.fd));
    CHECK(candidate.calls_until_buffered(1000) == 256);
    CHECK(buffer::is_registered_descriptor(candidate.fd));
}

TEST_CASE("file_with_two_slow_calls_is_adopted_after_24") {
    const Candidate candidate(chosen);
    CHECK(buffer::count_candidate_call(candidate.fd) == CallRoute::Pass);
    CHECK(buffer::count_candidate_call(candidate.fd) == CallRoute::Pass);
    CHECK(buffer::count_candidate_call(candidate.fd) == CallRoute::Time);
    buffer::record_candidate_call_time(candidate.fd, 1000, 0);
    buffer::record_candidate_call_time(candidate.fd, 1000, 11'001);
    SUBCASE("one slow, one fast") {
        buffer::record_candidate_call_time(candidate.fd, 1000, 11'000);
        CHECK(candidate.calls_until_buffered(1000) == 253);
    }
    SUBCASE("two slow") {
        buffer::record_candidate_call_time(candidate.fd, 1000, 11'001);
        CHECK(candidate.calls_until_buffered(1000) == 21);
    }
    buffer::record_candidate_call_time(candidate.fd, 1000, 0);
}

TEST_CASE("quick_calls_limit_timing_to_one_file_in_64") {
    CHECK(Candidate(chosen).calls_until_buffered(0) == 0);
    for (int i = 0; i < 32; ++i) {
        buffer::record_timed_call(false);
    }
    int timed = 0;
    for (int file = 0; file < 128; ++file) {
        const std::uint32_t state = buffer::make_candidate_state(0);
        timed += ((state >> buffer::calls_shift) & buffer::calls_mask) == 0 ? 1 : 0;
    }
    CHECK(timed == 2);
    buffer::record_timed_call(true);
    CHECK(((buffer::make_candidate_state(0) >> buffer::calls_shift) & buffer::calls_mask) == 0);
    buffer::record_timed_call(false);
}

TEST_CASE("files_without_benefit_raise_the_number_of_calls") {
    const auto calls = [] { return Candidate(chosen, O_RDWR | O_CREAT, false).calls_until_buffered(2000); };
    CHECK(Candidate(chosen).calls_until_buffered(0) == 0);
    buffer::record_benefit(0);
    buffer::record_benefit(19'999);
    CHECK(calls() == 1000);  // and none of its own
    buffer::record_benefit(20'000);
    CHECK(calls() == 500);
}

TEST_CASE("uncovered_or_synchronous_files_are_no_candidates") {
    CHECK_FALSE(buffer::counts_calls(Candidate("*.log:auto").fd));
    CHECK_FALSE(buffer::counts_calls(Candidate(chosen, O_RDWR | O_CREAT | O_SYNC).fd));
    CHECK_FALSE(buffer::counts_calls(Candidate("data:off,*:auto").fd));
    CHECK(buffer::counts_calls(Candidate("data:auto").fd));
}

TEST_CASE("file_is_adopted_at_open_when_the_rule_needs_it") {
    for (const char* params : {"*:direct", "*:verbose", "*"}) {
        CAPTURE(params);
        const Candidate candidate(params);
        CHECK(buffer::is_registered_descriptor(candidate.fd));
    }
}

TEST_CASE("descriptor_shared_with_a_child_is_not_buffered") {
    SUBCASE("fork") {
        const Candidate candidate(chosen);
        buffer::exclude_descriptors_after_fork(true);
        CHECK(candidate.calls_until_buffered(1000) == 257);
        CHECK_FALSE(buffer::is_registered_descriptor(candidate.fd));
    }
    SUBCASE("spawn, inherited") {
        const Candidate candidate(chosen);
        buffer::exclude_descriptors_after_fork(false);
        CHECK(candidate.calls_until_buffered(1000) == 257);
        CHECK_FALSE(buffer::is_registered_descriptor(candidate.fd));
    }
    SUBCASE("spawn, closed by exec") {
        const Candidate candidate(chosen, O_RDWR | O_CREAT | O_CLOEXEC);
        buffer::exclude_descriptors_after_fork(false);
        CHECK(candidate.calls_until_buffered(1000) == 256);
    }
    SUBCASE("64 forks, after which the count is the same") {
        const Candidate candidate(chosen);
        for (int i = 0; i < 64; ++i) {
            buffer::exclude_descriptors_after_fork(true);
        }
        CHECK_FALSE(buffer::counts_calls(candidate.fd));
    }
}

TEST_CASE("disqualified_descriptor_passes_for_good") {
    const Candidate candidate(chosen);
    buffer::exclude_descriptor(candidate.fd);
    CHECK_FALSE(buffer::counts_calls(candidate.fd));
}

TEST_CASE("duplicated_candidate_is_never_buffered") {
    const Candidate candidate(chosen);
    const int other = dup(candidate.fd);
    buffer::duplicate_candidate(candidate.fd, other);
    CHECK_FALSE(buffer::counts_calls(candidate.fd));
    CHECK_FALSE(buffer::counts_calls(other));
    CHECK_FALSE(buffer::is_registered_descriptor(candidate.fd));
    buffer::forget_candidate(other);
    close(other);
}

TEST_CASE("unseen_descriptor_of_a_file_without_lease_ends_its_buffering") {
    use(named_rule);
    const Folder folder;
    const std::string path = folder.path + "/data";
    const int unseen = open(path.c_str(), O_RDWR | O_CREAT, 0644);
    CHECK_FALSE(buffer::counts_calls(unseen));  // nobody is buffered without a lease
    const int fd = open_buffered(path, O_RDWR);
    std::string text(500, 'x');
    REQUIRE(write_at(fd, text.data(), 500, 0) == 500);
    CHECK(buffer::unguarded_files.load() == 1);
    REQUIRE(buffer::counts_calls(unseen));
    CHECK(buffer::count_candidate_call(unseen) == CallRoute::Buffer);
    CHECK(file_of(fd).mode.load() == buffer::Mode::Released);
    CHECK(contents(path) == text);
    CHECK(close_buffered(unseen) == 0);
    CHECK(close_buffered(fd) == 0);
    CHECK(buffer::unguarded_files.load() == 0);
}

TEST_CASE("unleased_file_rechecks_registered_descriptors") {
    const Candidate candidate(chosen, O_RDWR | O_CREAT);
    use(named_rule);
    const int fd = open_buffered(candidate.path, O_RDWR);
    CHECK(buffer::get_candidate_state(candidate.fd) == buffer::not_examined);
    CHECK(buffer::count_candidate_call(candidate.fd) == CallRoute::Buffer);
    CHECK(&file_of(fd) == &file_of(candidate.fd));
    CHECK(close_buffered(fd) == 0);
}
