// SPDX-License-Identifier: Apache-2.0
// Knows /sys/dev/block.
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

std::string kind_of(const fs::path& folder, bool partition) {
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

void put_number(json& out, const char* name, const fs::path& file, std::uint64_t unit = 1) {
    // Zero is how sysfs says that a device has no preference.
    if (const auto value = system_number(file.string()).value_or(0); value != 0) {
        out[name] = value * unit;
    }
}

void put_word(json& out, const char* name, const fs::path& file) {
    if (const auto word = system_word(file.string())) {
        out[name] = json_text(*word);
    }
}

void put_queue(json& out, const fs::path& queue) {
    if (const auto rotational = system_number((queue / "rotational").string())) {
        out["rotational"] = *rotational != 0;
    }
    if (const auto scheduler = system_word((queue / "scheduler").string())) {
        out["scheduler"] = chosen(*scheduler);
    }
    put_number(out, "queue_requests", queue / "nr_requests");
    // Here zero is a choice: nothing is read ahead.
    if (const auto kib = system_number((queue / "read_ahead_kb").string())) {
        out["read_ahead_bytes"] = *kib * 1024;
    }
    put_number(out, "logical_block_bytes", queue / "logical_block_size");
    put_number(out, "physical_block_bytes", queue / "physical_block_size");
    put_number(out, "minimum_io_bytes", queue / "minimum_io_size");
    put_number(out, "optimal_io_bytes", queue / "optimal_io_size");
    put_word(out, "write_cache", queue / "write_cache");
}

json members(const fs::path& folder) {
    json names = json::array();
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(folder / "slaves", failed)) {
        names.push_back(json_text(entry.path().filename().string()));
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
    json out{{"name", json_text(folder.filename().string())}};
    const bool partition = fs::exists(folder / "partition", failed);
    // A partition has a size of its own; queue and model belong to the disk.
    const fs::path disk = partition ? folder.parent_path() : folder;
    out["kind"] = kind_of(folder, partition);
    constexpr std::uint64_t sector = 512;
    put_number(out, "size_bytes", folder / "size", sector);
    put_queue(out, disk / "queue");
    put_word(out, "model", disk / "device" / "model");
    put_word(out, "backing_file", folder / "loop" / "backing_file");
    put_word(out, "mapping", folder / "dm" / "name");
    put_word(out, "raid_level", folder / "md" / "level");
    put_number(out, "raid_chunk_bytes", folder / "md" / "chunk_size");
    if (json below = members(folder); !below.empty()) {
        out["members"] = std::move(below);
    }
    return out;
}

std::string device_number(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISBLK(status.st_mode)) {
        return {};
    }
    return std::to_string(major(status.st_rdev)) + ":" + std::to_string(minor(status.st_rdev));
}

}  // namespace sonde::records
