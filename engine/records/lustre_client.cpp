// SPDX-License-Identifier: Apache-2.0
// Locations of settings in Lustre 1.8 to 2.16: settings moved from /proc to /sys and debugfs, so each is searched in
// all three.
#include "records/lustre_client.hpp"

#include "records/system_file.hpp"
#include "records/text.hpp"

#include <dirent.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

namespace sonde::records {
namespace {

using nlohmann::json;

constexpr std::array roots{"/sys/fs/lustre", "/proc/fs/lustre", "/sys/kernel/debug/lustre"};

std::string add_root(const std::string& path) {
    const char* root = std::getenv("SONDE_LUSTRE_ROOT");
    return (root != nullptr ? root : "") + path;
}

/// Sorted names in a directory; empty when it cannot be read.
std::vector<std::string> list_names(const std::string& folder) {
    std::vector<std::string> names;
    DIR* directory = ::opendir(folder.c_str());
    if (directory == nullptr) {
        return names;
    }
    while (const dirent* entry = ::readdir(directory)) {
        if (entry->d_name[0] != '.') {
            names.emplace_back(entry->d_name);
        }
    }
    ::closedir(directory);
    std::sort(names.begin(), names.end());
    return names;
}

/// Devices of a kind ("osc") that belong to the file system, by name, with their directories.
std::map<std::string, std::vector<std::string>> list_devices(const std::string& kind, const std::string& file_system) {
    std::map<std::string, std::vector<std::string>> folders;
    for (const char* root : roots) {
        const std::string folder = add_root(std::string(root) + "/" + kind);
        for (const std::string& name : list_names(folder)) {
            // scratch-OST0003-osc-ffff9c…, scratch-ffff9c…, and scratch-OST0003-osc-ffff… of a namespace alike.
            if (file_system.empty() || name.starts_with(file_system + "-")) {
                folders[name].push_back(folder + "/" + name);
            }
        }
    }
    return folders;
}

std::optional<std::string> find_word(const std::vector<std::string>& folders, const std::string& file) {
    for (const std::string& folder : folders) {
        if (auto word = read_system_text(folder + "/" + file)) {
            return word;
        }
    }
    return std::nullopt;
}

/// "8" when all values are equal, else "8 on 3, 32 on 1": by number, then by value.
std::string summarize_values(const std::map<std::string, std::uint64_t>& counts) {
    if (counts.size() == 1) {
        return counts.begin()->first;
    }
    std::vector<std::pair<std::string, std::uint64_t>> order(counts.begin(), counts.end());
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (const auto& [value, count] : order) {
        text += (text.empty() ? "" : ", ") + value + " on " + std::to_string(count);
    }
    return text;
}

/// Only the first line, because some files continue with an explanation.
std::string read_first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

struct LustreSetting {
    const char* kind;
    const char* file;
};
// Settings that affect the speed of a client.
constexpr std::array settings{LustreSetting{"osc", "checksums"},
                              LustreSetting{"osc", "checksum_type"},
                              LustreSetting{"osc", "max_rpcs_in_flight"},
                              LustreSetting{"osc", "max_dirty_mb"},
                              LustreSetting{"osc", "max_pages_per_rpc"},
                              LustreSetting{"osc", "short_io_bytes"},
                              LustreSetting{"mdc", "max_rpcs_in_flight"},
                              LustreSetting{"mdc", "max_mod_rpcs_in_flight"},
                              LustreSetting{"llite", "max_read_ahead_mb"},
                              LustreSetting{"llite", "max_read_ahead_per_file_mb"},
                              LustreSetting{"llite", "max_read_ahead_whole_mb"},
                              LustreSetting{"llite", "statahead_max"},
                              LustreSetting{"llite", "checksum_pages"},
                              LustreSetting{"llite", "fast_read"}};

/// For a list with its choice in brackets ("crc32 adler [crc32c]"), the choice.
std::string read_value(const std::string& word) {
    return read_bracketed_choice(read_first_line(word));
}

/// Limit of cached locks; "dynamic" when the file shows the current number instead of a limit.
std::string describe_lru_size(const std::vector<std::string>& folders, const std::string& shown_value) {
    return find_word(folders, "lock_unused_count") == shown_value ? "dynamic" : shown_value;
}

void add_settings(json& out, const std::string& name) {
    std::map<std::string, std::map<std::string, std::vector<std::string>>> values;
    for (const LustreSetting& setting : settings) {
        if (!values.contains(setting.kind)) {
            values[setting.kind] = list_devices(setting.kind, name);
        }
        std::map<std::string, std::uint64_t> counts;
        for (const auto& [device, folders] : values[setting.kind]) {
            if (const auto word = find_word(folders, setting.file)) {
                ++counts[read_value(*word)];
            }
        }
        if (!counts.empty()) {
            out[setting.kind][setting.file] = to_json_text(summarize_values(counts));
        }
    }
    for (const auto& [file, is_size] : {std::pair{"lru_size", true}, std::pair{"lru_max_age", false}}) {
        std::map<std::string, std::uint64_t> counts;
        for (const auto& [device, folders] : list_devices("ldlm/namespaces", name)) {
            if (const auto word = find_word(folders, file)) {
                ++counts[is_size ? describe_lru_size(folders, *word) : read_value(*word)];
            }
        }
        if (!counts.empty()) {
            out["ldlm"][file] = to_json_text(summarize_values(counts));
        }
    }
}

/// "lustre: 2.12.8_ddn18" of older clients, "2.15.3" of newer ones.
std::optional<std::string> read_client_version() {
    for (const char* root : roots) {
        const auto word = read_system_text(add_root(std::string(root) + "/version"));
        if (!word) {
            continue;
        }
        const std::string line = read_first_line(*word);
        constexpr std::string_view mark = "lustre: ";
        return line.starts_with(mark) ? line.substr(mark.size()) : line;
    }
    return read_system_text(add_root("/sys/module/lustre/version"));
}

/// `target_version` of each server, from the client's connection (file `import`).
std::map<std::string, std::uint64_t> read_server_versions(const std::string& name) {
    std::map<std::string, std::uint64_t> counts;
    for (const char* kind : {"osc", "mdc"}) {
        for (const auto& [device, folders] : list_devices(kind, name)) {
            constexpr std::string_view mark = "target_version:";
            const std::string text = find_word(folders, "import").value_or("");
            const std::size_t position = text.find(mark);
            if (position == std::string::npos) {
                continue;
            }
            const std::size_t begin = text.find_first_not_of(' ', position + mark.size());
            const std::string version = text.substr(begin, text.find('\n', begin) - begin);
            if (!version.empty()) {
                ++counts[version];
            }
        }
    }
    return counts;
}

}  // namespace

std::string parse_lustre_name(const std::string& source) {
    const std::size_t position = source.find(":/");
    if (position == std::string::npos) {
        return {};
    }
    return source.substr(position + 2, source.find('/', position + 2) - position - 2);
}

bool is_lustre_pretended() {
    return std::getenv("SONDE_LUSTRE_ROOT") != nullptr;
}

json describe_lustre_client(const std::string& name) {
    json out = json::object();
    if (const auto version = read_client_version()) {
        out["client_version"] = to_json_text(*version);
    }
    if (const auto versions = read_server_versions(name); !versions.empty()) {
        out["server_version"] = to_json_text(summarize_values(versions));
    }
    for (const char* path : {"/sys/kernel/debug/lnet/debug", "/proc/sys/lnet/debug"}) {
        if (const auto flags = read_system_text(add_root(path))) {
            out["debug"] = to_json_text(read_first_line(*flags));
            break;
        }
    }
    add_settings(out, name);
    return out;
}

std::vector<LockSpace> list_lock_spaces(const std::string& name) {
    std::vector<LockSpace> spaces;
    for (const auto& [device, folders] : list_devices("ldlm/namespaces", name)) {
        for (const std::string& folder : folders) {
            if (read_system_number(folder + "/lock_unused_count")) {
                spaces.push_back({device, folder});
                break;
            }
        }
    }
    return spaces;
}

LockCount count_locks(const std::vector<LockSpace>& spaces) {
    LockCount sum;
    for (const LockSpace& space : spaces) {
        sum.held += read_system_number(space.folder + "/lock_count").value_or(0);
        sum.unused += read_system_number(space.folder + "/lock_unused_count").value_or(0);
    }
    return sum;
}

}  // namespace sonde::records
