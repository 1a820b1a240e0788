// SPDX-License-Identifier: Apache-2.0
// Knows umount(2), mount(8) and what can go wrong between them.
#include "treatments/remount.hpp"

#include "records/mounts.hpp"
#include "treatments/child_command.hpp"
#include "treatments/kind.hpp"
#include "treatments/sync.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <vector>

namespace sonde::treatments {

namespace {

/// Why this mount must not be touched; empty when it may be.
std::string objection(const records::Mount& mount) {
    if (::geteuid() != 0) {
        return "only root may unmount: give the treatment a `command` that is allowed to (sudo)";
    }
    if (mount.point == "/") {
        return "the target lies on the root file system, which is always in use: use drop_page_cache";
    }
    if (mount.root != "/") {
        return "it is a bind mount or subvolume, so its caches would stay: give the treatment a `command`";
    }
    if (mount.type == "tmpfs" || mount.type == "ramfs") {
        return "it lives in memory, so unmounting would destroy it";
    }
    if (mount.type.compare(0, 4, "fuse") == 0) {
        return "only its own program can mount a FUSE file system: give the treatment a `command`";
    }
    return {};
}

/// Options as mount(8) takes them: SELinux' mark is only ever shown, never accepted.
std::string acceptable(const std::string& options) {
    std::string kept;
    for (std::size_t at = 0; at <= options.size();) {
        const std::size_t end = std::min(options.find(',', at), options.size());
        const std::string option = options.substr(at, end - at);
        at = end + 1;
        if (!option.empty() && option != "seclabel") {
            kept += (kept.empty() ? "" : ",") + option;
        }
    }
    return kept;
}

/// Tries as it was, as fstab says, and with the defaults; a file system with other options is better than none.
std::string mount_again(const records::Mount& mount) {
    const std::vector<std::vector<std::string>> attempts{
        {"mount", "-t", mount.type, "-o", acceptable(mount.options), "--", mount.source, mount.point},
        {"mount", "--", mount.point},
        {"mount", "-t", mount.type, "--", mount.source, mount.point}};
    std::string trouble;
    for (const auto& attempt : attempts) {
        const CommandResult result = run_program(attempt, nullptr);
        if (result.ok()) {
            return trouble.empty() ? "" : "mounted again with other options (" + trouble + ")";
        }
        trouble = trouble.empty() ? result.reason() : trouble;
    }
    return "IT IS NOT MOUNTED NOW (" + trouble + "): run `mount -t " + mount.type + " " + mount.source + " " +
           mount.point + "`";
}

}  // namespace

RemountResult remount(const std::string& directory) {
    const auto mount = records::mount_of(directory);
    if (!mount) {
        return {false, "Cannot remount: the mount table does not say which file system holds " + directory + "."};
    }
    const std::string refused = "Cannot remount " + mount->point + ": ";
    if (const std::string reason = objection(*mount); !reason.empty()) {
        return {false, refused + reason + "."};
    }
    // A loop device made by `mount -o loop` goes with its last user: holding it open keeps it for the second mount.
    const int device = ::open(mount->source.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (::umount2(mount->point.c_str(), UMOUNT_NOFOLLOW) != 0) {
        const int error = errno;
        if (device >= 0) {
            ::close(device);
        }
        return {false, refused +
                           (error == EBUSY
                                ? "somebody works in it or has a file open there (see `fuser -vm " + mount->point + "`)"
                                : std::string(std::strerror(error))) +
                           "."};
    }
    const std::string trouble = mount_again(*mount);
    if (device >= 0) {
        ::close(device);
    }
    if (!trouble.empty()) {
        return {false, "Unmounted " + mount->point + ", but " + trouble + "."};
    }
    return {true, "Unmounted and mounted " + mount->point + "."};
}

namespace {

using Outcome = TreatmentResult::Outcome;

TreatmentResult apply_remount(const Subject& subject) {
    if (!subject.asked.command.empty()) {
        const CommandResult result = run_shell(subject.asked.command, subject.stop);
        TreatmentResult ran =
            result.ok() ? said(Outcome::done, "Remounted by the given command.")
                        : said(Outcome::failed, "The command for remounting failed: " + result.reason() + ".");
        ran.forgot_names = result.ok();
        return ran;
    }
    const TreatmentResult synced =
        write_back(subject.directory, subject.stop);  // else the umount would take that time unstoppably
    if (synced.outcome != Outcome::done) {
        return synced;
    }
    const RemountResult result = remount(subject.directory);
    TreatmentResult done = said(result.done ? Outcome::done : Outcome::failed, result.text);
    done.forgot_names = result.done;
    return done;
}

}  // namespace

extern const Kind remount_treatment;
const Kind remount_treatment{.rule = {.name = "remount"}, .empties_caches = true, .apply = apply_remount};

}  // namespace sonde::treatments
