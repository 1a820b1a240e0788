// SPDX-License-Identifier: Apache-2.0
// Gives back the locks that the client of Lustre keeps for files nobody uses just now, and with them what it caches
// under them. Judged by the locks that are left, not by whether the write succeeded.
#include "records/file_system.hpp"
#include "records/lustre_client.hpp"
#include "treatments/kind.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace sonde::treatments {
namespace {

using Outcome = TreatmentResult::Outcome;
using records::LockCount;
using records::LockSpace;

// Locks are given back by threads of the client's own: those of a busy node take a moment.
constexpr double patience_s = 2, between_s = 0.05;

/// 0 or an errno.
int clear(const LockSpace& space) {
    const int descriptor = ::open((space.folder + "/lru_size").c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return errno;
    }
    constexpr std::string_view word = "clear";
    const int error = ::write(descriptor, word.data(), word.size()) < 0 ? errno : 0;
    ::close(descriptor);
    return error;
}

std::string counted(const LockCount& before, const LockCount& after) {
    const auto words = [](const LockCount& count) {
        return std::to_string(count.unused) + " of " + std::to_string(count.held);
    };
    return "Locks kept without use: " + words(before) + " before, " + words(after) + " after.";
}

TreatmentResult apply_cancel_locks(const Subject& subject) {
    const records::FileSystem system = records::describe_file_system(subject.directory);
    const bool lustre = system.type == "lustre";
    const std::vector<LockSpace> spaces =
        lustre || records::lustre_pretended()
            ? records::lock_spaces(lustre ? records::lustre_name(system.source) : std::string())
            : std::vector<LockSpace>{};
    if (spaces.empty()) {
        return said(Outcome::skipped,
                    lustre
                        ? "This client tells nothing of its locks (ldlm/namespaces): no lock was given back."
                        : "The target is on " + (system.type.empty() ? "no file system that is known" : system.type) +
                              ": only clients of Lustre are asked to give locks back.");
    }
    const LockCount before = records::locks_in(spaces);
    for (const LockSpace& space : spaces) {
        if (const int error = clear(space); error != 0) {
            return said(Outcome::failed, "The locks of " + space.name + " could not be given back (" +
                                             std::strerror(error) +
                                             "): run as root, or let an administrator do `lctl set_param "
                                             "ldlm.namespaces.*.lru_size=clear`.");
        }
    }
    LockCount after = records::locks_in(spaces);
    double waited = 0;
    while (after.unused > 0 && waited < patience_s) {
        if (!sleep_or_stop(between_s, subject.stop)) {
            return said(Outcome::failed, "Stopped while locks were given back.");
        }
        after = records::locks_in(spaces);
        waited += between_s;
    }
    TreatmentResult result =
        said(after.unused == 0 ? Outcome::done : Outcome::failed,
             (after.unused == 0 ? "" : "Not all locks were given back; somebody may take new ones. ") +
                 counted(before, after));
    result.locks_before = before.unused;
    result.locks_after = after.unused;
    return result;
}

}  // namespace

extern const Kind cancel_locks_treatment;
const Kind cancel_locks_treatment{.rule = {.name = "cancel_locks"}, .apply = apply_cancel_locks};

}  // namespace sonde::treatments
