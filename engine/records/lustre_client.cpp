// SPDX-License-Identifier: Apache-2.0
// Knows where versions of Lustre from 1.8 to 2.16 keep what: settings moved from /proc to /sys, and what is for
// developers to debugfs, so each is looked for in all three.
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

std::string from_root(const std::string& path) {
    const char* root = std::getenv("SONDE_LUSTRE_ROOT");
    return (root != nullptr ? root : "") + path;
}

/// Names in a folder, sorted; empty when it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
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

/// Devices of a kind ("osc") that belong to the file system, by name, with the folders that are theirs.
std::map<std::string, std::vector<std::string>> devices(const std::string& kind, const std::string& file_system) {
    std::map<std::string, std::vector<std::string>> found;
    for (const char* root : roots) {
        const std::string folder = from_root(std::string(root) + "/" + kind);
        for (const std::string& name : names_in(folder)) {
            // scratch-OST0003-osc-ffff9c…, scratch-ffff9c…, and scratch-OST0003-osc-ffff… of a namespace alike.
            if (file_system.empty() || name.starts_with(file_system + "-")) {
                found[name].push_back(folder + "/" + name);
            }
        }
    }
    return found;
}

std::optional<std::string> word_in(const std::vector<std::string>& folders, const std::string& file) {
    for (const std::string& folder : folders) {
        if (auto word = system_word(folder + "/" + file)) {
            return word;
        }
    }
    return std::nullopt;
}

/// "8" when all say so, else "8 on 3, 32 on 1": by number, then by value.
std::string summed(const std::map<std::string, std::uint64_t>& counts) {
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

/// Only the first line: some files explain themselves below it.
std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

struct Setting {
    const char* kind;
    const char* file;
};
// What makes one client faster than another on the same servers.
constexpr std::array settings{Setting{"osc", "checksums"},
                              Setting{"osc", "checksum_type"},
                              Setting{"osc", "max_rpcs_in_flight"},
                              Setting{"osc", "max_dirty_mb"},
                              Setting{"osc", "max_pages_per_rpc"},
                              Setting{"osc", "short_io_bytes"},
                              Setting{"mdc", "max_rpcs_in_flight"},
                              Setting{"mdc", "max_mod_rpcs_in_flight"},
                              Setting{"llite", "max_read_ahead_mb"},
                              Setting{"llite", "max_read_ahead_per_file_mb"},
                              Setting{"llite", "max_read_ahead_whole_mb"},
                              Setting{"llite", "statahead_max"},
                              Setting{"llite", "checksum_pages"},
                              Setting{"llite", "fast_read"}};

/// A list with its choice in brackets ("crc32 adler [crc32c]") is that choice.
std::string value_of(const std::string& word) {
    return chosen(first_line(word));
}

/// Numbers of locks that are kept: where the client decides by itself, the file shows how many it has just now, which
/// says nothing.
std::string lru_size_of(const std::vector<std::string>& folders, const std::string& shown) {
    return word_in(folders, "lock_unused_count") == shown ? "dynamic" : shown;
}

void put_settings(json& out, const std::string& name) {
    std::map<std::string, std::map<std::string, std::vector<std::string>>> known;
    for (const Setting& setting : settings) {
        if (!known.contains(setting.kind)) {
            known[setting.kind] = devices(setting.kind, name);
        }
        std::map<std::string, std::uint64_t> counts;
        for (const auto& [device, folders] : known[setting.kind]) {
            if (const auto word = word_in(folders, setting.file)) {
                ++counts[value_of(*word)];
            }
        }
        if (!counts.empty()) {
            out[setting.kind][setting.file] = json_text(summed(counts));
        }
    }
    for (const auto& [file, is_size] : {std::pair{"lru_size", true}, std::pair{"lru_max_age", false}}) {
        std::map<std::string, std::uint64_t> counts;
        for (const auto& [device, folders] : devices("ldlm/namespaces", name)) {
            if (const auto word = word_in(folders, file)) {
                ++counts[is_size ? lru_size_of(folders, *word) : value_of(*word)];
            }
        }
        if (!counts.empty()) {
            out["ldlm"][file] = json_text(summed(counts));
        }
    }
}

/// "lustre: 2.12.8_ddn18" of older clients, "2.15.3" of newer ones.
std::optional<std::string> client_version() {
    for (const char* root : roots) {
        const auto word = system_word(from_root(std::string(root) + "/version"));
        if (!word) {
            continue;
        }
        const std::string line = first_line(*word);
        constexpr std::string_view mark = "lustre: ";
        return line.starts_with(mark) ? line.substr(mark.size()) : line;
    }
    return system_word(from_root("/sys/module/lustre/version"));
}

/// `target_version` of each server, in the words of the client's connection to it (file `import`).
std::map<std::string, std::uint64_t> server_versions(const std::string& name) {
    std::map<std::string, std::uint64_t> counts;
    for (const char* kind : {"osc", "mdc"}) {
        for (const auto& [device, folders] : devices(kind, name)) {
            constexpr std::string_view mark = "target_version:";
            const std::string text = word_in(folders, "import").value_or("");
            const std::size_t at = text.find(mark);
            if (at == std::string::npos) {
                continue;
            }
            const std::size_t begin = text.find_first_not_of(' ', at + mark.size());
            const std::string version = text.substr(begin, text.find('\n', begin) - begin);
            if (!version.empty()) {
                ++counts[version];
            }
        }
    }
    return counts;
}

}  // namespace

std::string lustre_name(const std::string& source) {
    const std::size_t at = source.find(":/");
    if (at == std::string::npos) {
        return {};
    }
    return source.substr(at + 2, source.find('/', at + 2) - at - 2);
}

bool lustre_pretended() {
    return std::getenv("SONDE_LUSTRE_ROOT") != nullptr;
}

json describe_lustre_client(const std::string& name) {
    json out = json::object();
    if (const auto version = client_version()) {
        out["client_version"] = json_text(*version);
    }
    if (const auto versions = server_versions(name); !versions.empty()) {
        out["server_version"] = json_text(summed(versions));
    }
    for (const char* path : {"/sys/kernel/debug/lnet/debug", "/proc/sys/lnet/debug"}) {
        if (const auto flags = system_word(from_root(path))) {
            out["debug"] = json_text(first_line(*flags));
            break;
        }
    }
    put_settings(out, name);
    return out;
}

std::vector<LockSpace> lock_spaces(const std::string& name) {
    std::vector<LockSpace> spaces;
    for (const auto& [device, folders] : devices("ldlm/namespaces", name)) {
        for (const std::string& folder : folders) {
            if (system_number(folder + "/lock_unused_count")) {
                spaces.push_back({device, folder});
                break;
            }
        }
    }
    return spaces;
}

LockCount locks_in(const std::vector<LockSpace>& spaces) {
    LockCount sum;
    for (const LockSpace& space : spaces) {
        sum.held += system_number(space.folder + "/lock_count").value_or(0);
        sum.unused += system_number(space.folder + "/lock_unused_count").value_or(0);
    }
    return sum;
}

}  // namespace sonde::records
