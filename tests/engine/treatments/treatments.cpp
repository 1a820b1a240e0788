// SPDX-License-Identifier: Apache-2.0
// Treatments are judged by their effect, and give way within moments when the run is to stop.
#include "treatments/treatments.hpp"

#include "../temporary_folder.hpp"
#include "records/environment.hpp"
#include "records/file_system.hpp"
#include "records/system_file.hpp"
#include "treatments/child_command.hpp"
#include "treatments/memory_hog.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <string_view>
#include <thread>

using sonde::plan::Treatment;
using sonde::tests::TemporaryFolder;
using sonde::treatments::apply_treatment;
using sonde::treatments::TreatmentResult;
using Status = TreatmentResult::Status;

namespace {

std::atomic<int> polls{0};
bool never() {
    return false;
}
bool at_once() {
    return true;
}
bool at_third_poll() {
    return ++polls >= 3;
}

Treatment kind(const char* wanted) {
    Treatment treatment;
    treatment.kind = wanted;
    return treatment;
}

Treatment command(const std::string& text) {
    Treatment treatment = kind("command");
    treatment.command = text;
    return treatment;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

bool in_memory(const std::string& path) {
    return sonde::records::describe_file_system(path).memory_backed;
}

}  // namespace

TEST_CASE("treatment_names_match_plan") {
    std::vector<std::string_view> names;
    for (const sonde::treatments::TreatmentKind* kind : sonde::treatments::list_treatments()) {
        names.push_back(kind->capability.name);
    }
    CHECK(names == std::vector<std::string_view>{"sync", "drop_page_cache", "fadvise", "remount", "memory_hog", "sleep",
                                                 "command", "cancel_locks"});
}

TEST_CASE("sync_leaves_no_dirty_pages") {
    const TemporaryFolder folder;
    const std::string path = folder.write("data", std::string(1 << 20, 'x'));
    const TreatmentResult result = apply_treatment(kind("sync"), folder.path(), {path}, never);
    CHECK(result.outcome == Status::done);
    CHECK(sonde::treatments::measure_residency({path}).dirty == 0);
}

TEST_CASE("fadvise_drops_pages_of_files_and_reports_residency") {
    const TemporaryFolder folder;
    if (in_memory(folder.path())) {
        MESSAGE("skipped: this folder lives in memory");
        return;
    }
    const std::vector<std::string> files{folder.write("a", std::string(1 << 20, 'a')),
                                         folder.write("b", std::string(1 << 20, 'b'))};
    const TreatmentResult result = apply_treatment(kind("fadvise"), folder.path(), files, nullptr);
    CHECK(result.outcome == Status::done);
    CHECK(result.before.share() == 1.0);
    CHECK(result.after.share() == 0.0);
    CHECK(contains(result.text, "100.0 % before, 0.0 % after"));
    CHECK(result.seconds > 0);
}

TEST_CASE("fadvise_on_tmpfs_fails_with_reason") {
    if (!in_memory("/dev/shm")) {
        MESSAGE("skipped: no tmpfs at /dev/shm");
        return;
    }
    const TemporaryFolder folder("/dev/shm");
    const std::string path = folder.write("data", std::string(1 << 20, 'x'));
    const TreatmentResult result = apply_treatment(kind("fadvise"), folder.path(), {path}, never);
    CHECK(result.outcome == Status::failed);
    CHECK(result.after.share() == 1.0);
    CHECK(contains(result.text, "tmpfs keeps its files in memory"));
}

TEST_CASE("locked_pages_fail_treatment_above_max_residency") {
    const TemporaryFolder folder;
    if (in_memory(folder.path())) {
        MESSAGE("skipped: this folder lives in memory");
        return;
    }
    constexpr std::size_t bytes = 1U << 20U;
    const std::string path = folder.write("data", std::string(bytes, 'x'));
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    void* base = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    REQUIRE(base != MAP_FAILED);
    // Not mlock(3): sanitizers replace it by nothing.
    if (::syscall(SYS_mlock, base, bytes) != 0) {
        MESSAGE("skipped: no memory may be locked here");
    } else {
        Treatment treatment = kind("fadvise");
        const TreatmentResult strict = apply_treatment(treatment, folder.path(), {path}, never);
        CHECK(strict.outcome == Status::failed);
        CHECK(contains(strict.text, "mapped or locked"));
        treatment.max_residency = 1;
        CHECK(apply_treatment(treatment, folder.path(), {path}, never).outcome == Status::done);
    }
    ::munmap(base, bytes);
    ::close(descriptor);
}

TEST_CASE("fadvise_names_first_unreadable_file") {
    const TemporaryFolder folder;
    const std::vector<std::string> files{folder.write("here", "x"), folder / "gone", folder / "also gone"};
    const TreatmentResult result = apply_treatment(kind("fadvise"), folder.path(), files, never);
    CHECK(result.outcome == Status::failed);
    CHECK(contains(result.text, "2 of 3 files"));
    CHECK(contains(result.text, "/gone: No such file"));
}

TEST_CASE("fadvise_without_files_is_skipped") {
    const TemporaryFolder folder;
    CHECK(apply_treatment(kind("fadvise"), folder.path(), {}, never).outcome == Status::skipped);
}

TEST_CASE("drop_page_cache_without_root_uses_fadvise") {
    const TemporaryFolder folder;
    if (in_memory(folder.path()) || sonde::tests::is_root()) {
        MESSAGE("skipped: this user may drop the caches of the whole machine (or the folder lives in memory)");
        return;
    }
    const std::string path = folder.write("data", std::string(1 << 20, 'x'));
    const TreatmentResult result = apply_treatment(kind("drop_page_cache"), folder.path(), {path}, never);
    CHECK(result.outcome == Status::done);
    CHECK(contains(result.text, "needs root"));
    CHECK(contains(result.text, "fadvise"));
    CHECK(result.after.share() == 0.0);
}

TEST_CASE("drop_page_cache_empties_cache_of_node") {
    const TemporaryFolder folder;
    if (!sonde::tests::is_root() || std::getenv("SONDE_TEST_WHOLE_MACHINE") == nullptr || in_memory(folder.path())) {
        MESSAGE("skipped: disturbs the whole machine; as root set SONDE_TEST_WHOLE_MACHINE=1");
        return;
    }
    const std::string path = folder.write("data", std::string(1 << 20, 'x'));
    const TreatmentResult result = apply_treatment(kind("drop_page_cache"), folder.path(), {path}, never);
    CHECK(result.outcome == Status::done);
    CHECK(result.before.share() == 1.0);
    CHECK(result.after.share() == 0.0);
    CHECK(contains(result.text, "of this node"));
}

TEST_CASE("remount_refuses_tmpfs_bind_mounts_and_root") {
    const TreatmentResult root = apply_treatment(kind("remount"), "/", {}, never);
    CHECK(root.outcome == Status::failed);
    CHECK(contains(root.text, sonde::tests::is_root() ? "root file system" : "only root may unmount"));
    if (in_memory("/dev/shm") && sonde::tests::is_root()) {
        const TreatmentResult memory = apply_treatment(kind("remount"), "/dev/shm", {}, never);
        CHECK(memory.outcome == Status::failed);
        CHECK(contains(memory.text, "would destroy it"));
    }
}

TEST_CASE("remount_by_command_has_result_of_command") {
    const TemporaryFolder folder;
    Treatment treatment = kind("remount");
    treatment.command = "true";
    CHECK(apply_treatment(treatment, folder.path(), {}, never).outcome == Status::done);
    treatment.command = "echo no such server >&2; exit 32";
    const TreatmentResult failed = apply_treatment(treatment, folder.path(), {}, never);
    CHECK(failed.outcome == Status::failed);
    CHECK(contains(failed.text, "exit code 32: no such server"));
}

TEST_CASE("memory_hog_holds_memory_until_last_copy") {
    Treatment treatment = kind("memory_hog");
    const auto memory = sonde::records::read_node_memory();
    treatment.fraction = static_cast<double>(64ULL << 20U) / static_cast<double>(memory);
    const auto resident = [] {
        return sonde::records::find_bytes(sonde::records::read_system_file("/proc/self/status"), "VmRSS").value_or(0);
    };
    const auto before = resident();
    TreatmentResult result = apply_treatment(treatment, ".", {}, never);
    CHECK(result.outcome == Status::done);
    CHECK(resident() >= before + (62ULL << 20U));
    CHECK(resident() <= before + (80ULL << 20U));
    TreatmentResult copy = result;
    result = {};
    CHECK(resident() >= before + (62ULL << 20U));
    copy = {};
    CHECK(resident() < before + (16ULL << 20U));
}

TEST_CASE("memory_hog_leaves_reserve") {
    // Stopped at the first piece, so that the test itself takes none.
    const auto stopped = sonde::treatments::hold_memory(0.9, at_once);
    CHECK(stopped.stopped);
    CHECK(stopped.bytes == 0);
    // More than all memory leaves the reserve untouched; polls make it end early where memory is plentiful.
    polls = 0;
    const auto held = sonde::treatments::hold_memory(0.94, at_third_poll);
    CHECK(held.bytes < held.requested_bytes);
    CHECK((held.stopped || !held.problem.empty()));
}

TEST_CASE("memory_hog_of_zero_is_skipped") {
    CHECK(apply_treatment(kind("memory_hog"), ".", {}, never).outcome == Status::skipped);
}

TEST_CASE("sleep_waits_and_ends_early_on_stop") {
    Treatment treatment = kind("sleep");
    treatment.time = 120'000'000;
    const TreatmentResult complete = apply_treatment(treatment, ".", {}, never);
    CHECK(complete.outcome == Status::done);
    CHECK(complete.seconds >= 0.12);
    treatment.time = 60'000'000'000;
    polls = 0;
    const TreatmentResult cut = apply_treatment(treatment, ".", {}, at_third_poll);
    CHECK(cut.outcome == Status::failed);
    CHECK(cut.seconds < 5);
}

TEST_CASE("failed_command_reports_code_and_first_line") {
    CHECK(apply_treatment(command("true"), ".", {}, never).outcome == Status::done);
    const TreatmentResult failed =
        apply_treatment(command("echo; echo first >&2; echo second >&2; exit 3"), ".", {}, never);
    CHECK(failed.outcome == Status::failed);
    CHECK(contains(failed.text, "exit code 3: first."));
    CHECK(contains(apply_treatment(command("kill -9 $$"), ".", {}, never).text, "signal 9"));
    CHECK(contains(apply_treatment(command("no-such-program-at-all"), ".", {}, never).text, "exit code 127"));
}

TEST_CASE("command_with_long_stderr_does_not_block") {
    const auto result = sonde::treatments::run_shell("head -c 3000000 /dev/zero | tr '\\0' 'e' >&2", never);
    CHECK(result.ok());
    CHECK(result.first_line.size() <= 400);
}

TEST_CASE("stop_ends_command_and_its_children") {
    const TemporaryFolder folder;
    polls = 0;
    const std::string pid_file = folder / "pid";
    const TreatmentResult result =
        apply_treatment(command("sleep 1000 & echo $! > '" + pid_file + "'; wait"), ".", {}, at_third_poll);
    CHECK(result.outcome == Status::failed);
    CHECK(result.seconds < 5);
    const auto pid = sonde::records::read_system_number(pid_file);
    REQUIRE(pid.has_value());
    for (int wait = 0; wait < 100 && ::kill(static_cast<pid_t>(*pid), 0) == 0; ++wait) {
        const std::string state = sonde::records::read_system_file("/proc/" + std::to_string(*pid) + "/stat");
        if (contains(state, ") Z")) {
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const std::string state = sonde::records::read_system_file("/proc/" + std::to_string(*pid) + "/stat");
    CHECK((state.empty() || contains(state, ") Z")));
}

TEST_CASE("command_that_ignores_sigterm_is_killed") {
    polls = 0;
    const auto result = sonde::treatments::run_shell("trap '' TERM; while :; do sleep 0.2; done", at_third_poll);
    CHECK(result.stopped);
    CHECK_FALSE(result.ok());
}

TEST_CASE("missing_program_is_reported") {
    const auto result = sonde::treatments::run_program({"/no/such/program"}, never);
    CHECK_FALSE(result.ok());
    CHECK(contains(result.reason(), "could not be started"));
}

TEST_CASE("stop_before_treatment_changes_nothing") {
    const TemporaryFolder folder;
    const std::string path = folder.write("data", std::string(1 << 16, 'x'));
    const TreatmentResult result = apply_treatment(kind("sync"), folder.path(), {path}, at_once);
    // The sync may be quicker than the first poll; what must not happen is a claim that contradicts it.
    CHECK((result.outcome == Status::done || contains(result.text, "Stopped")));
}
