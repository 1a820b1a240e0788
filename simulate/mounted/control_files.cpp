// SPDX-License-Identifier: Apache-2.0
#include "mounted/control_files.hpp"

#include <unistd.h>
#include <algorithm>
#include <chrono>

namespace sonde::simulate {
namespace {

double seconds_since_1970() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

ControlFiles::ControlFiles(RealTimeMachine& driver, std::uint32_t nodes, std::function<std::string()> describe_mount)
    : machine_(driver), epoch_(seconds_since_1970()) {
    files_.emplace_back().name = control_directory_name;
    add("mount.json").text = std::move(describe_mount);
    ControlFile& faults = add("faults");
    faults.text = [this] { return format_faults(); };
    faults.write_line = [this](std::string_view line) { switch_fault(line); };
    add("drop_caches").write_line = [this](std::string_view) {
        machine_.call_machine([](Machine& machine) {
            for (std::uint32_t client = 0; client < machine.system().clients.size(); ++client) {
                machine.drop_client_caches(client);
            }
            machine.drop_server_caches();
        });
    };
    machine_.call_machine([this, nodes](Machine& machine) {
        for (MonitoringFile& file : list_monitoring_files(machine.get_monitoring_data(), nodes)) {
            ControlFile& added = add(file.path);
            added.text = [this, file = std::move(file)] {
                return machine_.call_machine([&](Machine& model) {
                    return file.text(file.reads_free_space ? model.get_monitoring_data() : model.get_counters(), epoch_,
                                     seconds_since_1970());
                });
            };
        }
    });
    ino_t number = ~ino_t{0};  // counted down, since file systems use small numbers
    for (ControlFile& file : files_) {
        file.inode.control = &file;
        file.inode.number = --number;
        const mode_t rights = (file.text ? 0444U : 0U) | (file.write_line ? 0200U : 0U);
        file.inode.mode = file.entries.empty() ? S_IFREG | rights : S_IFDIR | 0555U;
    }
}

ControlFile& ControlFiles::add(const std::string& path) {
    ControlFile* directory = &files_.front();
    for (std::size_t from = 0; from <= path.size();) {
        const std::size_t end = std::min(path.find('/', from), path.size());
        const std::string name = path.substr(from, end - from);
        ControlFile* next = find(*directory, name);
        if (next == nullptr) {
            next = &files_.emplace_back();
            next->name = name;
            next->parent = directory;  // cppcheck-suppress invalidContainer  // a deque does not move its members
            directory->entries.push_back(next);
        }
        directory = next;
        from = end + 1;
    }
    return *directory;
}

ControlFile* ControlFiles::find(ControlFile& directory, std::string_view name) {
    for (ControlFile* entry : directory.entries) {
        if (entry->name == name) {
            return entry;
        }
    }
    return nullptr;
}

struct stat ControlFiles::get_attributes(const ControlFile& file) {
    struct stat attributes {};
    attributes.st_ino = file.inode.number;
    attributes.st_mode = file.inode.mode;
    attributes.st_uid = ::geteuid();  // who has mounted it may switch faults, also where other users have access
    attributes.st_gid = ::getegid();
    attributes.st_nlink = file.inode.is_directory() ? 2 : 1;
    attributes.st_blksize = 4096;
    return attributes;
}

/// "slow-target 3 10x" begins a fault and replaces one of that kind at that part. "end slow-target 3" ends it, "clear"
/// ends all faults.
void ControlFiles::switch_fault(std::string_view line) {
    if (line == "clear") {
        machine_.call_machine([](Machine& machine) {
            while (!machine.faults().empty()) {
                machine.end_fault(Fault(machine.faults().front()));
            }
        });
        return;
    }
    constexpr std::string_view end_prefix = "end ";
    if (line.starts_with(end_prefix)) {
        const Fault ended = parse_fault(line.substr(end_prefix.size()));
        machine_.call_machine([&](Machine& machine) {
            const std::vector<Fault>& faults = machine.faults();
            if (std::none_of(faults.begin(), faults.end(),
                             [&](const Fault& fault) { return has_same_part(fault, ended); })) {
                throw SystemModelError("fault \"" + std::string(line.substr(end_prefix.size())) +
                                       "\" is not switched on");
            }
            machine.end_fault(ended);
        });
        return;
    }
    const Fault fault = parse_fault(line);
    if (fault.from > 0) {
        throw SystemModelError("fault \"" + std::string(line) + "\": a mount switches faults now; leave `at` out");
    }
    machine_.call_machine([&](Machine& machine) { machine.begin_fault(fault); });
}

std::string ControlFiles::format_faults() {
    return machine_.call_machine([](Machine& machine) {
        std::string text;
        for (const Fault& fault : machine.faults()) {
            text += fault.to_text() + "\n";
        }
        return text;
    });
}

}  // namespace sonde::simulate
