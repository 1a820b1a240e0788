// SPDX-License-Identifier: Apache-2.0
#include "mounted/control_files.hpp"

#include <algorithm>
#include <chrono>

namespace sonde::simulate {
namespace {

double seconds_of_the_epoch() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

ControlFiles::ControlFiles(Pace& pace, std::uint32_t nodes, std::function<std::string()> about)
    : pace_(pace), epoch_(seconds_of_the_epoch()) {
    files_.emplace_back().name = own_name;
    add("mount.json").text = std::move(about);
    ControlFile& faults = add("faults");
    faults.text = [this] { return faults_text(); };
    faults.take = [this](std::string_view line) { tell_fault(line); };
    add("drop_caches").take = [this](std::string_view) {
        pace_.with([](Machine& machine) {
            for (std::uint32_t client = 0; client < machine.site().clients.size(); ++client) {
                machine.drop_caches(client);
            }
            machine.drop_server_caches();
        });
    };
    pace_.with([this, nodes](Machine& machine) {
        for (TraceFile& file : trace_files(machine.traces(), nodes)) {
            ControlFile& added = add(file.path);
            added.text = [this, file = std::move(file)] {
                return pace_.with([&](Machine& of) {
                    return file.text(file.of_space ? of.traces() : of.counters(), epoch_, seconds_of_the_epoch());
                });
            };
        }
    });
    ino_t number = ~ino_t{0};  // from the end, where no file system has its own
    for (ControlFile& file : files_) {
        file.inode.control = &file;
        file.inode.number = --number;
        const mode_t rights = (file.text ? 0444U : 0U) | (file.take ? 0200U : 0U);
        file.inode.mode = file.entries.empty() ? S_IFREG | rights : S_IFDIR | 0555U;
    }
}

ControlFile& ControlFiles::add(const std::string& path) {
    ControlFile* at = &files_.front();
    for (std::size_t from = 0; from <= path.size();) {
        const std::size_t end = std::min(path.find('/', from), path.size());
        const std::string name = path.substr(from, end - from);
        ControlFile* next = find(*at, name);
        if (next == nullptr) {
            next = &files_.emplace_back();
            next->name = name;
            next->parent = at;  // cppcheck-suppress invalidContainer  // a deque leaves its members where they are
            at->entries.push_back(next);
        }
        at = next;
        from = end + 1;
    }
    return *at;
}

ControlFile* ControlFiles::find(ControlFile& directory, std::string_view name) {
    for (ControlFile* entry : directory.entries) {
        if (entry->name == name) {
            return entry;
        }
    }
    return nullptr;
}

struct stat ControlFiles::attributes_of(const ControlFile& file) {
    struct stat attributes {};
    attributes.st_ino = file.inode.number;
    attributes.st_mode = file.inode.mode;
    attributes.st_nlink = file.inode.directory() ? 2 : 1;
    attributes.st_blksize = 4096;
    return attributes;
}

/// "slow-target 3 10x" begins a fault, in place of one of that kind at that part; "end slow-target 3" ends it, "clear"
/// ends all.
void ControlFiles::tell_fault(std::string_view line) {
    if (line == "clear") {
        pace_.with([](Machine& machine) {
            while (!machine.faults().empty()) {
                machine.end_fault(Fault(machine.faults().front()));
            }
        });
        return;
    }
    constexpr std::string_view word = "end ";
    if (line.starts_with(word)) {
        const Fault wanted = parse_fault(line.substr(word.size()));
        pace_.with([&](Machine& machine) {
            const std::vector<Fault>& all = machine.faults();
            if (std::none_of(all.begin(), all.end(), [&](const Fault& fault) { return same_part(fault, wanted); })) {
                throw SiteError("fault \"" + std::string(line.substr(word.size())) + "\" is not switched on");
            }
            machine.end_fault(wanted);
        });
        return;
    }
    const Fault fault = parse_fault(line);
    if (fault.from > 0) {
        throw SiteError("fault \"" + std::string(line) + "\": a mount switches faults now; leave `at` out");
    }
    pace_.with([&](Machine& machine) { machine.begin_fault(fault); });
}

std::string ControlFiles::faults_text() {
    return pace_.with([](Machine& machine) {
        std::string text;
        for (const Fault& fault : machine.faults()) {
            text += fault.text() + "\n";
        }
        return text;
    });
}

}  // namespace sonde::simulate
