// SPDX-License-Identifier: Apache-2.0
#include "runs/target_checks.hpp"

#include "backends/backend.hpp"
#include "backends/cuda_library.hpp"
#include "plan/plan_error.hpp"
#include "plan/units.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::runs {
namespace {

void check_backend(const backends::Backend& backend, const std::string& directory) {
    if (const backends::Availability answer = backend.check_availability(directory); !answer.is_available) {
        throw EnvironmentError("backend \"" + std::string(backend.name) + "\" cannot run here: " + answer.reason);
    }
}

void check_gpus(const std::vector<int>& gpus) {
    if (gpus.empty()) {
        return;
    }
    if (const backends::Availability answer = backends::find_gpus(gpus); !answer.is_available) {
        throw EnvironmentError(answer.reason);
    }
}

}  // namespace

void check_machine(const plan::Plan& plan) {
    std::set<std::string_view> checked_backends;  // a check may start a ring or a driver, and a plan have many phases
    for (const plan::Phase& phase : plan.phases) {
        const backends::Backend& backend = *backends::find_backend(phase.data.backend);
        if (checked_backends.insert(backend.name).second) {
            check_backend(backend, plan.target.device ? "" : plan.target.path);
        }
        check_gpus(phase.data.io.gpus);
    }
}

bool needs_files(const plan::Plan& plan) {
    return std::any_of(plan.phases.begin(), plan.phases.end(), [](const plan::Phase& phase) {
        return backends::find_backend(phase.data.backend)->traits.needs_files;
    });
}

std::string describe_zero_size(const records::FileSystem& fs) {
    const std::string type = fs.type.empty() ? "a kind of its own" : fs.type;
    // A client of several servers reports 0 until the servers have sent their sizes.
    const bool later = fs.network || fs.type.starts_with("fuse");
    return type +
           (later ? ", which says that it has a size of 0 bytes: either its servers have not told theirs yet, so try "
                    "again in a minute, or it holds no data, so name another directory"
                  : ", which is no file system for data: name another directory");
}

void check_directory(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        throw plan::PlanError("target " + path + ": " + std::strerror(errno) +
                              (errno == ENOENT ? "; name an existing directory on the file system under test" : ""));
    }
    if (!S_ISDIR(info.st_mode)) {
        throw plan::PlanError("target " + path + " is not a directory" +
                              (S_ISBLK(info.st_mode) ? ": a plan for a block device sets target.device"
                                                     : ": name one on the file system under test"));
    }
}

void check_room_across_targets(const plan::Plan& plan, std::uint64_t bytes, std::uint64_t files) {
    std::vector<std::string> directories{plan.target.path};
    directories.insert(directories.end(), plan.data.files.across.begin(), plan.data.files.across.end());
    std::map<dev_t, std::uint64_t> sharing;  // directories on one file system share its free space
    for (const std::string& path : directories) {
        check_directory(path);
        struct stat info {};
        ::stat(path.c_str(), &info);
        ++sharing[info.st_dev];
    }
    for (const std::string& path : directories) {
        struct stat info {};
        ::stat(path.c_str(), &info);
        const std::uint64_t sharers = sharing[info.st_dev];
        plan::Plan plan_here = plan;
        plan_here.target.path = path;
        check_target(plan_here, bytes / directories.size() * sharers + sharers,
                     files / directories.size() * sharers + sharers);
    }
}

void check_target(const plan::Plan& plan, std::uint64_t bytes, std::uint64_t files) {
    const std::string& path = plan.target.path;
    const records::FileSystem fs = records::describe_file_system(path);
    if (fs.read_only) {
        throw EnvironmentError("target " + path +
                               " is on a read-only file system: name another directory, or mount it writable");
    }
    const bool changes = std::any_of(plan.phases.begin(), plan.phases.end(), [](const plan::Phase& phase) {
        return plan::writes(phase.op) || phase.op == plan::Op::remove;
    });
    if (::access(path.c_str(), (changes || !plan.data.files.in_place() ? W_OK : 0) | X_OK) != 0) {
        throw EnvironmentError("target " + path + " is not writable for this user: " + std::strerror(errno));
    }
    if (bytes > 0 && fs.total_bytes == 0 && fs.available_bytes == 0) {
        throw EnvironmentError("target " + path + " is on " + describe_zero_size(fs));
    }
    if (bytes > fs.available_bytes || plan.target.min_free > fs.available_bytes - bytes) {
        throw EnvironmentError(
            "target " + path + " has " + plan::format_bytes(fs.available_bytes) + " free, but the plan needs " +
            plan::format_bytes(bytes) + " and leaves " + plan::format_bytes(plan.target.min_free) +
            " untouched (target.min_free): " +
            (bytes <= fs.available_bytes
                 ? "set target.min_free to less, or free some space"
                 : "make the volume smaller (data.access.volume; `sonde plan` says what would fit)"));
    }
    if (fs.inodes_total > 0 && files > fs.inodes_free) {
        throw EnvironmentError("target " + path + " has " + std::to_string(fs.inodes_free) +
                               " free inodes, but the plan makes " + std::to_string(files) + " files");
    }
    for (const plan::Phase& phase : plan.phases) {
        const std::uint64_t align = fs.direct_offset_align;
        const plan::Access& a = phase.data.access;
        if (phase.data.io.direct && align > 0 &&
            (a.transfer % align != 0 || a.offset % align != 0 || a.gap % align != 0 || a.stride % align != 0)) {
            throw plan::PlanError("plan: phase \"" + phase.id + "\" uses direct I/O, and " + fs.type + " on " + path +
                                  " wants transfer, offset, gap and stride in multiples of " + std::to_string(align) +
                                  " B");
        }
    }
}

}  // namespace sonde::runs
