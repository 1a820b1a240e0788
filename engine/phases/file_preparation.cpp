// SPDX-License-Identifier: Apache-2.0
#include "phases/file_preparation.hpp"

#include "backends/backend.hpp"
#include "files/run_directories.hpp"
#include "layouts/striping.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace sonde::phases {
namespace {

/// Whether a symbolic link in the place of a data file is acceptable: for files that the plan names by path. Such a
/// file is replaced when it must be fresh, otherwise the data goes to the link's target if that is a regular file.
bool has_foreign_file(const plan::Phase& phase, const std::string& path) {
    if (!phase.data.files.in_place()) {
        return false;
    }
    struct stat info {};
    const bool exists = ::stat(path.c_str(), &info) == 0;
    return (phase.op == plan::Op::write && phase.open == plan::OpenMode::truncate) ||
           (exists ? S_ISREG(info.st_mode) : errno == ENOENT);
}

/// Opens the directories of data files: below the run directory, or where the plan's paths say.
class DataDirectories {
 public:
    DataDirectories(const RunContext& context, const files::FileMap& map)
        : in_place_(context.in_place()), map_(map), below_run_(map) {}

    /// The directory of a task's k-th file, and the file's name in it. Valid until the next call.
    std::pair<const files::ConfinedDirectory&, std::string> find(int task, int k) {
        if (!in_place_) {
            return {below_run_.directory_of(task), map_.file_name(task, k)};
        }
        // The user named this path, so symbolic links in it are followed.
        const std::string path = map_.path(task, k);
        const std::size_t slash = path.rfind('/');
        named_ = files::ConfinedDirectory::open(slash == std::string::npos ? "." : path.substr(0, slash + 1));
        return {named_, path.substr(slash == std::string::npos ? 0 : slash + 1)};
    }

 private:
    bool in_place_;
    const files::FileMap& map_;
    files::FileDirectories below_run_;
    files::ConfinedDirectory named_;
};

/// In a directory that others created, a link or device could be in the place of a data file, and a write would leave
/// the target. Returns one sentence, or an empty string when all files of this process are regular or absent.
std::string check_found_files(const RunContext& context, const plan::Phase& phase, const files::FileMap& map) {
    const int first = context.team.location().process * context.tasks.threads_per_process;
    DataDirectories directories(context, map);
    for (int task = first; task < std::min(first + context.tasks.threads_per_process, context.tasks.tasks()); ++task) {
        for (int k = 0; k < map.files_per_task(); ++k) {
            const auto [parent, name] = directories.find(task, k);
            if (!context.in_place() && (parent.error() == ELOOP || parent.error() == ENOTDIR)) {
                return parent.path() +
                       " is no directory: Sonde writes below no links or files that it finds; choose another "
                       "target.directory";
            }
            struct stat info {};
            const std::string path = map.path(task, k);
            if (parent.status(name, info) == 0 && !S_ISREG(info.st_mode) &&
                !(S_ISLNK(info.st_mode) && has_foreign_file(phase, path))) {
                return path +
                       " is not a regular file: Sonde writes to no links, devices or pipes that it finds; "
                       "choose another target.directory";
            }
        }
    }
    return {};
}

/// An existing file keeps its stripes when the phase overwrites it.
std::string make_striped_files(const RunContext& context, const plan::Phase& phase,
                               const files::ConfinedDirectory& parent, const std::string& name) {
    struct stat info {};
    if (phase.open == plan::OpenMode::overwrite && parent.status(name, info) == 0) {
        return {};
    }
    try {
        layouts::make_striped_file(*context.plan.target.striping, context.storage.file_system, parent, name);
    } catch (const std::invalid_argument& reason) {
        return reason.what();
    }
    return {};
}

/// Makes a file that several tasks share. One sentence, empty when all is well.
std::string make_shared(const RunContext& context, const plan::Phase& phase, const files::ConfinedDirectory& parent,
                        const std::string& name, const std::string& path) {
    const bool may_exist = phase.open == plan::OpenMode::overwrite;
    int failed = 0;
    if (may_exist && context.in_place()) {
        // The user named this path: a link there leads to the file that is meant.
        const files::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
        failed = *file < 0 ? errno : 0;
    } else {
        const files::Descriptor file =
            may_exist ? parent.open_file(name, O_WRONLY | O_CREAT, 0666) : parent.create_file(name, 0666);
        failed = *file < 0 ? -*file : 0;
    }
    return failed != 0 ? "cannot make " + path + ": " + std::strerror(failed) : std::string();
}

}  // namespace

std::string prepare_files(const RunContext& context, std::size_t index, const files::FileMap& map) {
    const plan::Phase& phase = context.plan.phases[index];
    if (phase.data.files.is_device()) {
        return {};  // nothing is made, replaced or removed on a device
    }
    if (!plan::writes(phase.op) || !backends::find_backend(phase.data.backend)->traits.needs_files) {
        return {};
    }
    if (context.plan.target.use_existing) {
        const std::string complaint = check_found_files(context, phase, map);
        if (!complaint.empty()) {
            return complaint;
        }
    }
    if (phase.op != plan::Op::write && !(phase.op == plan::Op::replay && index == 0 && context.storage.stripes_files)) {
        return {};
    }
    const ranks::ProcessLocation& location = context.team.location();
    const bool again = !context.manifest.data.states().empty() || context.plan.target.use_existing;
    DataDirectories directories(context, map);
    for (int thread = 0; thread < context.tasks.threads_per_process; ++thread) {
        const int task = location.process * context.tasks.threads_per_process + thread;
        if (task >= context.tasks.tasks() || !map.is_first_task_of_file(task)) {
            continue;
        }
        const bool made_by_task = map.share_of_task(task).sharers == 1 && !context.storage.stripes_files;
        if (made_by_task && !again) {
            continue;  // inside the timed open
        }
        std::vector<int> files = phase.files;
        for (int k = 0; files.empty() ? k < map.files_per_task() : k < static_cast<int>(files.size()); ++k) {
            const int number = files.empty() ? k : files[static_cast<std::size_t>(k)];
            const std::string path = map.path(task, number);
            const auto [parent, name] = directories.find(task, number);
            // The file is removed instead of truncated, because some file systems flush truncated files on close.
            const int failed = again && phase.open == plan::OpenMode::truncate ? parent.unlink(name) : 0;
            if (failed != 0 && failed != -ENOENT) {
                return "cannot replace " + path + ": " + std::strerror(-failed);
            }
            std::string complaint;
            if (context.storage.stripes_files) {
                complaint = make_striped_files(context, phase, parent, name);
            } else if (!made_by_task) {
                complaint = make_shared(context, phase, parent, name, path);
            }
            if (!complaint.empty()) {
                return complaint;
            }
        }
    }
    return {};
}

}  // namespace sonde::phases
