// SPDX-License-Identifier: Apache-2.0
// Implements remount with umount(2) and mount(8).
#include "treatments/remount.hpp"

#include "records/mounts.hpp"
#include "treatments/child_command.hpp"
#include "treatments/treatment_kind.hpp"
#include "treatments/write_back.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <vector>

namespace sonde::treatments {

namespace {

/// Why this mount must not be unmounted; empty when it may be.
std::string explain_refusal(const records::Mount& mount) {
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

/// Options for mount(8), without `seclabel`, which the kernel shows but does not accept.
std::string filter_options(const std::string& options) {
    std::string accepted;
    for (std::size_t begin = 0; begin <= options.size();) {
        const std::size_t end = std::min(options.find(',', begin), options.size());
        const std::string option = options.substr(begin, end - begin);
        begin = end + 1;
        if (!option.empty() && option != "seclabel") {
            accepted += (accepted.empty() ? "" : ",") + option;
        }
    }
    return accepted;
}

/// Tries the old options, fstab, and the defaults, because a file system with other options is better than none.
std::string mount_again(const records::Mount& mount) {
    const std::vector<std::vector<std::string>> attempts{
        {"mount", "-t", mount.type, "-o", filter_options(mount.options), "--", mount.source, mount.point},
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
    const auto mount = records::find_mount(directory);
    if (!mount) {
        return {false, "Cannot remount: the mount table does not say which file system holds " + directory + "."};
    }
    const std::string refused = "Cannot remount " + mount->point + ": ";
    if (const std::string reason = explain_refusal(*mount); !reason.empty()) {
        return {false, refused + reason + "."};
    }
    // The kernel removes a loop device of `mount -o loop` with its last user; an open descriptor keeps it for the
    // second mount.
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

using Status = TreatmentResult::Status;

TreatmentResult apply_remount(const TreatmentRequest& context) {
    if (!context.treatment.command.empty()) {
        const CommandResult result = run_shell(context.treatment.command, context.stop);
        TreatmentResult ran =
            result.ok() ? make_result(Status::done, "Remounted by the given command.")
                        : make_result(Status::failed, "The command for remounting failed: " + result.reason() + ".");
        ran.dropped_metadata_cache = result.ok();
        return ran;
    }
    const TreatmentResult synced =
        write_back(context.directory, context.stop);  // otherwise umount would write back without polling `stop`
    if (synced.outcome != Status::done) {
        return synced;
    }
    const RemountResult result = remount(context.directory);
    TreatmentResult done = make_result(result.done ? Status::done : Status::failed, result.text);
    done.dropped_metadata_cache = result.done;
    return done;
}

}  // namespace

extern const TreatmentKind remount_treatment;
const TreatmentKind remount_treatment{
    .capability = {.name = "remount"}, .empties_caches = true, .apply = apply_remount};

}  // namespace sonde::treatments
