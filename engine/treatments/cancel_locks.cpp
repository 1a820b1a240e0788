// SPDX-License-Identifier: Apache-2.0
// Releases unused locks of the Lustre client, together with the data that they protect in its cache. The outcome
// depends on the remaining locks, not on the success of the write.
#include "records/file_system.hpp"
#include "records/lustre_client.hpp"
#include "treatments/treatment_kind.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace sonde::treatments {
namespace {

using Status = TreatmentResult::Status;
using records::LockCount;
using records::LockSpace;

// Threads of the client release the locks asynchronously, which takes time on a busy node.
constexpr double patience_s = 2, between_s = 0.05;

/// 0 or an errno.
int clear_locks(const LockSpace& space) {
    const int descriptor = ::open((space.folder + "/lru_size").c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return errno;
    }
    constexpr std::string_view word = "clear";
    const int error = ::write(descriptor, word.data(), word.size()) < 0 ? errno : 0;
    ::close(descriptor);
    return error;
}

std::string describe_locks(const LockCount& before, const LockCount& after) {
    const auto to_text = [](const LockCount& count) {
        return std::to_string(count.unused) + " of " + std::to_string(count.held);
    };
    return "Locks kept without use: " + to_text(before) + " before, " + to_text(after) + " after.";
}

TreatmentResult apply_cancel_locks(const TreatmentRequest& context) {
    const records::FileSystem system = records::describe_file_system(context.directory);
    const bool lustre = system.type == "lustre";
    const std::vector<LockSpace> spaces =
        lustre || records::is_lustre_pretended()
            ? records::list_lock_spaces(lustre ? records::parse_lustre_name(system.source) : std::string())
            : std::vector<LockSpace>{};
    if (spaces.empty()) {
        return make_result(Status::skipped,
                           lustre ? "This client tells nothing of its locks (ldlm/namespaces): no lock was given back."
                                  : "The target is on " +
                                        (system.type.empty() ? "no file system that is known" : system.type) +
                                        ": only clients of Lustre are asked to give locks back.");
    }
    const LockCount before = records::count_locks(spaces);
    for (const LockSpace& space : spaces) {
        if (const int error = clear_locks(space); error != 0) {
            return make_result(Status::failed, "The locks of " + space.name + " could not be given back (" +
                                                   std::strerror(error) +
                                                   "): run as root, or let an administrator do `lctl set_param "
                                                   "ldlm.namespaces.*.lru_size=clear`.");
        }
    }
    LockCount after = records::count_locks(spaces);
    double waited = 0;
    while (after.unused > 0 && waited < patience_s) {
        if (!sleep_until_stopped(between_s, context.stop)) {
            return make_result(Status::failed, "Stopped while locks were given back.");
        }
        after = records::count_locks(spaces);
        waited += between_s;
    }
    TreatmentResult result =
        make_result(after.unused == 0 ? Status::done : Status::failed,
                    (after.unused == 0 ? "" : "Not all locks were given back; somebody may take new ones. ") +
                        describe_locks(before, after));
    result.locks_before = before.unused;
    result.locks_after = after.unused;
    return result;
}

}  // namespace

extern const TreatmentKind cancel_locks_treatment;
const TreatmentKind cancel_locks_treatment{.capability = {.name = "cancel_locks"}, .apply = apply_cancel_locks};

}  // namespace sonde::treatments
