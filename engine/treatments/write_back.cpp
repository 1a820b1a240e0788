// SPDX-License-Identifier: Apache-2.0
#include "treatments/write_back.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <memory>

namespace sonde::treatments {
namespace {

using Status = TreatmentResult::Status;

/// Writes back the file system of `directory`, or that block device. Returns 0 or errno, -1 = stopped.
int sync_file_system(const std::string& directory, const StopPredicate& stop) {
    const auto error = std::make_shared<int>(0);
    const bool finished = run_until_stopped(
        [error, directory] {
            struct stat status {};
            const bool is_device = ::stat(directory.c_str(), &status) == 0 && S_ISBLK(status.st_mode);
            const int descriptor =
                ::open(directory.c_str(), O_RDONLY | O_CLOEXEC | (is_device ? O_NONBLOCK : O_DIRECTORY));
            if (descriptor < 0) {
                ::sync();  // writes back all file systems instead
                return;
            }
            *error = (is_device ? ::fsync(descriptor) : ::syncfs(descriptor)) == 0 ? 0 : errno;
            ::close(descriptor);
        },
        stop);
    return finished ? *error : -1;
}

}  // namespace

TreatmentResult write_back(const std::string& directory, const StopPredicate& stop) {
    const int error = sync_file_system(directory, stop);
    if (error < 0) {
        return make_result(Status::failed, "Stopped while the file system was being synced.");
    }
    if (error > 0) {
        return make_result(Status::failed, "The file system at " + directory +
                                               " could not be synced: " + std::strerror(error) +
                                               "; data may be lost, look into the kernel's log.");
    }
    return make_result(Status::done, "Wrote all dirty data of the file system back.");
}

extern const TreatmentKind sync_treatment;
const TreatmentKind sync_treatment{
    .capability = {.name = "sync"},
    .apply = [](const TreatmentRequest& context) { return write_back(context.directory, context.stop); },
};

}  // namespace sonde::treatments
