// SPDX-License-Identifier: Apache-2.0
#include "treatments/sync.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <memory>

namespace sonde::treatments {
namespace {

using Outcome = TreatmentResult::Outcome;

/// errno of a write-back of the file system that holds `directory`, 0 = done, -1 = stopped.
int sync_file_system(const std::string& directory, const StopAsked& stop) {
    const auto error = std::make_shared<int>(0);
    const bool finished = run_or_leave(
        [error, directory] {
            const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (descriptor < 0) {
                ::sync();  // everything, which includes what was meant
                return;
            }
            *error = ::syncfs(descriptor) == 0 ? 0 : errno;
            ::close(descriptor);
        },
        stop);
    return finished ? *error : -1;
}

}  // namespace

TreatmentResult write_back(const std::string& directory, const StopAsked& stop) {
    const int error = sync_file_system(directory, stop);
    if (error < 0) {
        return said(Outcome::failed, "Stopped while the file system was being synced.");
    }
    if (error > 0) {
        return said(Outcome::failed, "The file system at " + directory + " could not be synced: " +
                                         std::strerror(error) + "; data may be lost, look into the kernel's log.");
    }
    return said(Outcome::done, "Wrote all dirty data of the file system back.");
}

extern const Kind sync_treatment;
const Kind sync_treatment{
    .rule = {.name = "sync"},
    .apply = [](const Subject& subject) { return write_back(subject.directory, subject.stop); },
};

}  // namespace sonde::treatments
