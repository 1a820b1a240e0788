// SPDX-License-Identifier: Apache-2.0
#include "runs/device_target.hpp"

#include "files/segments.hpp"
#include "patterns/geometry.hpp"
#include "plan/plan_error.hpp"
#include "plan/units.hpp"
#include "records/block_device.hpp"
#include "records/device_use.hpp"
#include "records/text.hpp"
#include "runs/device_signature.hpp"
#include "runs/target_checks.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace sonde::runs {
namespace {

using files::Descriptor;

bool writes_to_device(const plan::Plan& plan) {
    return std::any_of(plan.phases.begin(), plan.phases.end(),
                       [](const plan::Phase& phase) { return plan::writes(phase.op); });
}

/// The path, with the device that a symbolic link leads to: "/dev/disk/by-id/x (/dev/sdb)".
std::string name_device(const std::string& path) {
    char resolved[PATH_MAX];
    if (::realpath(path.c_str(), resolved) == nullptr || path == resolved) {
        return path;
    }
    return path + " (" + resolved + ")";
}

/// Why `path` is no block device, before anything is opened. Empty when it is one.
std::string explain_no_device(const std::string& path, struct stat& status) {
    if (::stat(path.c_str(), &status) != 0) {
        return std::string("cannot be used: ") + std::strerror(errno) +
               (errno == ENOENT ? "; name an existing block device (`lsblk` lists them)" : "");
    }
    if (S_ISBLK(status.st_mode)) {
        return {};
    }
    const char* kind = S_ISCHR(status.st_mode)   ? "a character device"
                       : S_ISDIR(status.st_mode) ? "a directory"
                       : S_ISREG(status.st_mode) ? "a regular file"
                                                 : "a pipe or socket";
    return std::string("is ") + kind + ", not a block device: " +
           (S_ISDIR(status.st_mode) ? "leave out target.device" : "name a disk, partition, loop device or the like");
}

/// Opens the device for reading. The descriptor is the device with the number in `status`.
Descriptor open_device(const std::string& name, const std::string& path, const struct stat& status, int flags) {
    Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
    if (*descriptor < 0) {
        const bool is_gone = errno == ENXIO || errno == ENODEV || errno == ENOMEDIUM || errno == ENOENT;
        throw EnvironmentError("device " + name +
                               (errno == EBUSY ? " is in use by the kernel or another program: "
                                : is_gone      ? " was removed or has no medium: "
                                               : " cannot be opened: ") +
                               std::strerror(errno) +
                               (errno == EBUSY    ? "; unmount or release it first, or name another device"
                                : errno == EACCES ? "; run as root, or as a member of the group that owns it"
                                                  : ""));
    }
    struct stat opened {};
    if (::fstat(*descriptor, &opened) != 0 || !S_ISBLK(opened.st_mode) || opened.st_rdev != status.st_rdev) {
        throw EnvironmentError("device " + name + " became another device while it was opened: start again");
    }
    return descriptor;
}

std::uint64_t read_device_bytes(int descriptor, const std::string& name) {
    std::uint64_t bytes = 0;
    if (::ioctl(descriptor, BLKGETSIZE64, &bytes) != 0 || bytes == 0) {
        throw EnvironmentError("device " + name + " has a size of 0 bytes: it was removed or has no medium");
    }
    return bytes;
}

/// Checks that nobody else uses the device, and that it may be written to.
void check_free_for_writing(int descriptor, const std::string& name, const std::string& path, const struct stat& status,
                            const records::DeviceFamily& family) {
    int is_read_only = 0;
    if (::ioctl(descriptor, BLKROGET, &is_read_only) == 0 && is_read_only != 0) {
        throw EnvironmentError("device " + name + " is read-only: name another device, or let the plan only read");
    }
    if (::access(path.c_str(), W_OK) != 0) {
        throw EnvironmentError("device " + name + " is not writable for this user: " + std::strerror(errno));
    }
    if (const std::string use = records::describe_device_use(family); !use.empty()) {
        throw EnvironmentError("device " + name + " " + use +
                               ": a plan that writes needs a device that nobody uses, also with --destroy");
    }
    static_cast<void>(open_device(name, path, status, O_EXCL));
}

/// Throws when the device holds something that the user did not allow to destroy.
void check_signature(int descriptor, const std::string& name, const records::DeviceFamily& family) {
    const char* remedy = ": name another device, or add --destroy to overwrite it";
    std::string signature;
    try {
        signature = find_device_signature(descriptor);
    } catch (const std::runtime_error& error) {
        throw EnvironmentError("what device " + name + " holds is not known, because " + error.what() +
                               "; or add --destroy to write in any case");
    }
    if (signature.empty() && !family.partitions.empty()) {
        signature = "the partition " + family.partitions.front();
    }
    if (!signature.empty()) {
        throw plan::PlanError("device " + name + " holds " + signature + remedy);
    }
}

/// Checks that every phase stays on the device.
void check_capacity(const phases::RunContext& context, std::uint64_t bytes, const std::string& name) {
    const patterns::FileShare share{static_cast<std::uint64_t>(context.tasks.tasks()), 0};
    for (const plan::Phase& phase : context.plan.phases) {
        const std::uint64_t segments = files::segments_of(phase, context.tasks, context.node_memory);
        const std::uint64_t end = patterns::Geometry(phase.data.access, segments, share, 0).end_of_file();
        if (end > bytes) {
            throw plan::PlanError("plan: phase \"" + phase.id + "\" reaches to byte " + std::to_string(end) +
                                  ", but device " + name + " has " + std::to_string(bytes) + " B (" +
                                  plan::format_bytes(bytes) +
                                  "): make volume, segments, within or offset smaller, or use fewer tasks");
        }
    }
}

/// Checks that direct I/O is in whole logical blocks of the device.
void check_alignment(const phases::RunContext& context, int descriptor, const std::string& name) {
    int logical = 0;
    if (::ioctl(descriptor, BLKSSZGET, &logical) != 0 || logical <= 0) {
        return;
    }
    const auto block = static_cast<std::uint64_t>(logical);
    for (const plan::Phase& phase : context.plan.phases) {
        const plan::Access& access = phase.data.access;
        bool is_aligned = access.transfer % block == 0 && access.offset % block == 0 && access.gap % block == 0 &&
                          access.stride % block == 0;
        for (const plan::TransferSize& entry : access.sizes) {
            is_aligned = is_aligned && entry.size % block == 0;
        }
        if (phase.data.io.direct && !is_aligned) {
            throw plan::PlanError("plan: phase \"" + phase.id + "\" uses direct I/O, and device " + name +
                                  " has logical blocks of " + std::to_string(block) +
                                  " B: give transfer, sizes, offset, gap and stride in multiples of that");
        }
    }
}

}  // namespace

void check_device_options(const plan::Plan& plan, const phases::RunOptions& options) {
    const std::string& path = plan.target.path;
    if (!plan.target.device) {
        if (!options.allow_device.empty() || options.destroy) {
            throw plan::PlanError(std::string(options.destroy ? "--destroy" : "--allow-device") +
                                  ": the plan's target " + path +
                                  " is not a block device (target.device is not set): leave the option out");
        }
        return;
    }
    if (options.allow_device.empty() && writes_to_device(plan)) {
        throw plan::PlanError("target " + path + " is a block device, and the plan writes: add --allow-device " + path +
                              " when this run may overwrite it");
    }
    if (!options.allow_device.empty() && options.allow_device != path) {
        throw plan::PlanError("--allow-device " + options.allow_device + " is not the plan's target " + path +
                              ": type the same path in full");
    }
    if (options.destroy && !writes_to_device(plan)) {
        throw plan::PlanError("--destroy: the plan only reads device " + path + ": leave the option out");
    }
}

void claim_device(phases::RunContext& context) {
    const plan::Plan& plan = context.plan;
    const std::string& path = plan.target.path;
    check_device_options(plan, context.options);
    if (context.team.location().nodes > 1) {
        throw plan::PlanError("target " + path +
                              " is a block device of one node, but the run has several: start it on one node");
    }
    const std::string name = name_device(path);
    struct stat status {};
    if (const std::string complaint = explain_no_device(path, status); !complaint.empty()) {
        throw plan::PlanError("target " + name + " " + complaint);
    }
    Descriptor descriptor = open_device(name, path, status, 0);
    const bool writes = writes_to_device(plan);
    const std::uint64_t bytes = read_device_bytes(*descriptor, name);
    if (writes) {
        const records::DeviceFamily family = records::find_device_family(records::read_device_number(path));
        check_free_for_writing(*descriptor, name, path, status, family);
        if (!context.options.destroy) {
            check_signature(*descriptor, name, family);
        }
    }
    check_capacity(context, bytes, name);
    check_alignment(context, *descriptor, name);
    context.storage.device = status.st_rdev;
    // While it is open with O_EXCL, the kernel refuses to mount it or to make it part of another device.
    context.root_state.device =
        std::make_shared<const Descriptor>(writes ? open_device(name, path, status, O_EXCL) : std::move(descriptor));
}

nlohmann::ordered_json describe_device_target(const std::string& path) {
    nlohmann::ordered_json description{{"type", "block"}, {"source", records::to_json_text(path)}, {"network", false}};
    const std::string number = records::read_device_number(path);
    if (const nlohmann::json device = records::describe_block_device(number); !device.is_null()) {
        description["block_device"] = device;
    }
    return description;
}

}  // namespace sonde::runs
