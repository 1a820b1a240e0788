// SPDX-License-Identifier: Apache-2.0
// A real remount, of a file system in a file: its cache is empty afterwards, its files and its loop device are there.
#include "treatments/remount.hpp"

#include "../temporary_folder.hpp"
#include "records/mounts.hpp"
#include "treatments/child_command.hpp"
#include "treatments/treatments.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>

namespace {

using sonde::treatments::run_shell;

constexpr int skipped = 77;

bool not_asked() {
    return false;
}

/// In a child with mounts of its own; returns the number of the first check that failed, 0 = none.
int remount_once(const std::string& image, const std::string& point) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return skipped;
    }
    // `-o loop` makes a device that vanishes with its last user: a remount must not lose it.
    if (!run_shell("mount -o loop,noatime '" + image + "' '" + point + "'", nullptr).ok()) {
        return skipped;
    }
    const std::string path = point + "/data";
    {
        const int descriptor = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        const std::string data(1U << 20U, 'x');
        if (descriptor < 0 || ::write(descriptor, data.data(), data.size()) != static_cast<ssize_t>(data.size())) {
            return 1;
        }
        ::close(descriptor);
    }
    sonde::plan::Treatment treatment;
    treatment.kind = "remount";
    const auto busy_descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto busy = sonde::treatments::apply_treatment(treatment, point, {path}, not_asked);
    ::close(busy_descriptor);
    if (busy.outcome != sonde::treatments::TreatmentResult::Status::failed ||
        busy.text.find("has a file open there") == std::string::npos) {
        return 2;
    }
    const auto result = sonde::treatments::apply_treatment(treatment, point, {path}, not_asked);
    if (result.outcome != sonde::treatments::TreatmentResult::Status::done) {
        return 3;
    }
    if (result.before.share() < 1.0 || result.after.share() != 0.0 || result.after.pages != 256) {
        return 4;
    }
    const auto mount = sonde::records::find_mount(path);
    if (!mount || mount->point != point || mount->options.find("noatime") == std::string::npos) {
        return 5;
    }
    return ::umount(point.c_str()) == 0 ? 0 : 6;
}

}  // namespace

TEST_CASE("remount_empties_cache_and_keeps_options") {
    if (!sonde::tests::is_root()) {
        MESSAGE("skipped: mounting needs root");
        return;
    }
    const sonde::tests::TemporaryFolder folder;
    const std::string image = folder / "image";
    const std::string point = folder / "mount point";
    std::filesystem::create_directory(point);
    if (!run_shell("truncate -s 32M '" + image + "' && mkfs.ext4 -q '" + image + "'", nullptr).ok()) {
        MESSAGE("skipped: mkfs.ext4 is not here");
        return;
    }
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(remount_once(image, point));
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WEXITSTATUS(status) == skipped) {
        MESSAGE("skipped: loop devices or mount namespaces are not allowed here");
        return;
    }
    CHECK(WEXITSTATUS(status) == 0);
}
