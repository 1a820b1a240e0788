// SPDX-License-Identifier: Apache-2.0
#include "phases/prepare.hpp"

#include "backends/backend.hpp"
#include "files/striping.hpp"
#include "plan/parse.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sonde::phases {
namespace {

/// Whether a link that stands where a data file should is what the user means. A file that the plan names by its path
/// is replaced when it is to be fresh, link or not, and else written to where the link leads, unless that is no file.
bool may_be_link(const plan::Phase& phase, const std::string& path) {
    if (!phase.data.files.in_place()) {
        return false;
    }
    struct stat info {};
    const bool there = ::stat(path.c_str(), &info) == 0;
    return (phase.op == plan::Op::write && phase.open == plan::Open::truncate) ||
           (there ? S_ISREG(info.st_mode) : errno == ENOENT);
}

/// In a directory that others made, a link or a device could stand where a data file should: writing there would leave
/// the target. One sentence, empty when all of this process's files are regular or absent.
std::string check_found_files(const Context& context, const plan::Phase& phase, const files::FileMap& map) {
    const int first = context.team.place().process * context.tasks.threads;
    for (int task = first; task < std::min(first + context.tasks.threads, context.tasks.tasks()); ++task) {
        for (int k = 0; k < map.files_per_task(); ++k) {
            const std::string path = map.path(task, k);
            struct stat info {};
            if (::lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) &&
                !(S_ISLNK(info.st_mode) && may_be_link(phase, path))) {
                return path +
                       " is not a regular file: Sonde writes to no links, devices or pipes that it finds; "
                       "choose another target.directory";
            }
        }
    }
    return {};
}

/// A file that is there already keeps its stripes when it is to be written over.
std::string make_striped(const Context& context, const plan::Phase& phase, const std::string& path) {
    if (phase.open == plan::Open::overwrite && ::access(path.c_str(), F_OK) == 0) {
        return {};
    }
    try {
        files::make_striped_file(*context.plan.target.striping, context.storage.file_system, path);
    } catch (const std::invalid_argument& reason) {
        return reason.what();
    }
    return {};
}

}  // namespace

std::string prepare_files(const Context& context, std::size_t index, const files::FileMap& map) {
    const plan::Phase& phase = context.plan.phases[index];
    if (!plan::writes(phase.op) || !backends::find(phase.data.backend)->traits.needs_files) {
        return {};
    }
    if (context.plan.target.use_existing) {
        const std::string complaint = check_found_files(context, phase, map);
        if (!complaint.empty()) {
            return complaint;
        }
    }
    if (phase.op != plan::Op::write) {
        return {};
    }
    const ranks::Place& place = context.team.place();
    const bool again = !context.manifest.data.states().empty() || context.plan.target.use_existing;
    for (int thread = 0; thread < context.tasks.threads; ++thread) {
        const int task = place.process * context.tasks.threads + thread;
        if (task >= context.tasks.tasks() || !map.first_of_file(task)) {
            continue;
        }
        std::vector<int> files = phase.files;
        for (int k = 0; files.empty() ? k < map.files_per_task() : k < static_cast<int>(files.size()); ++k) {
            const std::string path = map.path(task, files.empty() ? k : files[static_cast<std::size_t>(k)]);
            // A fresh file, not a truncated one: some file systems flush a file that replaces a truncated one.
            if (again && phase.open == plan::Open::truncate && ::unlink(path.c_str()) != 0 && errno != ENOENT) {
                return "cannot replace " + path + ": " + std::strerror(errno);
            }
            if (context.storage.stripes_files) {
                if (const std::string complaint = make_striped(context, phase, path); !complaint.empty()) {
                    return complaint;
                }
                continue;
            }
            if (map.share(task).sharers == 1) {
                if (!again) {
                    break;  // made by its task, inside the timed open
                }
                continue;
            }
            const int exclusive = phase.open == plan::Open::overwrite ? 0 : O_EXCL;
            const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | exclusive, 0666);
            if (fd < 0) {
                return "cannot make " + path + ": " + std::strerror(errno);
            }
            ::close(fd);
        }
    }
    return {};
}

}  // namespace sonde::phases
