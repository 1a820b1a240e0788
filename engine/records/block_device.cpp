// SPDX-License-Identifier: Apache-2.0
// Reads /sys/dev/block.
#include "records/block_device.hpp"

#include "records/system_file.hpp"
#include "records/text.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <array>
#include <filesystem>
#include <utility>

namespace sonde::records {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string find_kind(const fs::path& folder, bool partition) {
    std::error_code none;
    if (partition) {
        return "partition";
    }
    for (const char* kind : {"loop", "dm", "md"}) {
        if (fs::exists(folder / kind, none)) {
            return kind;
        }
    }
    return "disk";
}

void add_number(json& out, const char* name, const fs::path& file, std::uint64_t unit = 1) {
    // sysfs reports 0 for devices without a preference.
    if (const auto value = read_system_number(file.string()).value_or(0); value != 0) {
        out[name] = value * unit;
    }
}

void add_text(json& out, const char* name, const fs::path& file) {
    if (const auto word = read_system_text(file.string())) {
        out[name] = to_json_text(*word);
    }
}

void add_queue(json& out, const fs::path& queue) {
    if (const auto rotational = read_system_number((queue / "rotational").string())) {
        out["rotational"] = *rotational != 0;
    }
    if (const auto scheduler = read_system_text((queue / "scheduler").string())) {
        out["scheduler"] = read_bracketed_choice(*scheduler);
    }
    add_number(out, "queue_requests", queue / "nr_requests");
    // Here 0 is a setting: no read-ahead.
    if (const auto kib = read_system_number((queue / "read_ahead_kb").string())) {
        out["read_ahead_bytes"] = *kib * 1024;
    }
    add_number(out, "maximum_request_bytes", queue / "max_sectors_kb", 1024);
    add_number(out, "logical_block_bytes", queue / "logical_block_size");
    add_number(out, "physical_block_bytes", queue / "physical_block_size");
    add_number(out, "minimum_io_bytes", queue / "minimum_io_size");
    add_number(out, "optimal_io_bytes", queue / "optimal_io_size");
    add_text(out, "write_cache", queue / "write_cache");
}

json list_members(const fs::path& folder) {
    json names = json::array();
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(folder / "slaves", failed)) {
        names.push_back(to_json_text(entry.path().filename().string()));
    }
    return names;
}

}  // namespace

json describe_block_device(const std::string& device, const std::string& system_root) {
    std::error_code failed;
    const fs::path folder = fs::canonical(system_root + "/sys/dev/block/" + device, failed);
    if (failed) {
        return nullptr;
    }
    json out{{"name", to_json_text(folder.filename().string())}};
    const bool partition = fs::exists(folder / "partition", failed);
    // A partition has its own size; queue and model belong to the disk.
    const fs::path disk = partition ? folder.parent_path() : folder;
    out["kind"] = find_kind(folder, partition);
    constexpr std::uint64_t sector = 512;
    add_number(out, "size_bytes", folder / "size", sector);
    add_queue(out, disk / "queue");
    add_text(out, "model", disk / "device" / "model");
    add_text(out, "backing_file", folder / "loop" / "backing_file");
    add_text(out, "mapping", folder / "dm" / "name");
    add_text(out, "raid_level", folder / "md" / "level");
    add_number(out, "raid_chunk_bytes", folder / "md" / "chunk_size");
    if (json below = list_members(folder); !below.empty()) {
        out["members"] = std::move(below);
    }
    return out;
}

json describe_block_device_of_mount(const std::string& device, const std::string& source) {
    json description = describe_block_device(device);
    if (description.is_null()) {
        if (const std::string number = read_device_number(source); !number.empty()) {
            description = describe_block_device(number);
        }
    }
    return description;
}

std::string read_device_number(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISBLK(status.st_mode)) {
        return {};
    }
    return std::to_string(major(status.st_rdev)) + ":" + std::to_string(minor(status.st_rdev));
}

}  // namespace sonde::records
