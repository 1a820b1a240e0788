// SPDX-License-Identifier: Apache-2.0
// Parses mountinfo (proc(5)) and the kernel's struct statx.
#include "records/mounts.hpp"

#include "records/system_file.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace sonde::records {

namespace {

std::vector<std::string_view> split_text(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        if (end > 0) {
            parts.push_back(text.substr(0, end));
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

bool parse_octal(char digit) {
    return digit >= '0' && digit <= '7';
}

/// The kernel writes blank, tab, newline, backslash and '#' as three octal digits.
std::string unescape(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size() && parse_octal(text[i + 1]) && parse_octal(text[i + 2]) &&
            parse_octal(text[i + 3])) {
            out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

std::optional<int> parse_number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

std::string join_options(std::string_view mount, std::string_view file_system) {
    std::vector<std::string_view> options_seen = split_text(mount, ',');
    for (const std::string_view option : split_text(file_system, ',')) {
        // "rw" of the file system is irrelevant when the mount is "ro"; the caller handles the reverse.
        const bool access = option == "rw" || option == "ro";
        if (!access && std::find(options_seen.begin(), options_seen.end(), option) == options_seen.end()) {
            options_seen.push_back(option);
        }
    }
    std::string joined;
    for (const std::string_view option : options_seen) {
        joined += joined.empty() ? "" : ",";
        joined += option;
    }
    return unescape(joined);
}

bool has_option(std::string_view options, std::string_view wanted) {
    const auto all = split_text(options, ',');
    return std::find(all.begin(), all.end(), wanted) != all.end();
}

/// id parent major:minor root point options [optional …] - type source super-options
std::optional<Mount> parse_line(std::string_view line) {
    const std::vector<std::string_view> fields = split_text(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 3) {
        return std::nullopt;
    }
    const auto id = parse_number(fields[0]);
    const auto parent = parse_number(fields[1]);
    if (!id || !parent) {
        return std::nullopt;
    }
    // With an empty source only type and options follow the dash.
    const bool sourced = fields.end() - dash >= 4;
    const std::string_view file_system_options = sourced ? dash[3] : dash[2];
    Mount mount;
    mount.id = *id;
    mount.parent = *parent;
    mount.device = fields[2];
    mount.root = unescape(fields[3]);
    mount.point = unescape(fields[4]);
    mount.options = join_options(fields[5], file_system_options);
    mount.type = unescape(dash[1]);
    mount.source = sourced ? unescape(dash[2]) : std::string();
    mount.read_only = has_option(fields[5], "ro") || has_option(file_system_options, "ro");
    return mount;
}

const Mount* find_covering(const std::vector<Mount>& mounts, const Mount& below, const std::string& point) {
    const Mount* best = nullptr;
    for (const Mount& mount : mounts) {
        if (mount.parent == below.id && mount.id != below.id && mount.point == point) {
            best = &mount;
        }
    }
    return best;
}

/// Follows mounts stacked on one point; a cycle in a damaged table ends the walk.
const Mount* find_top_of_stack(const std::vector<Mount>& mounts, const Mount* mount, const std::string& point) {
    for (std::size_t i = 0; i < mounts.size(); ++i) {
        const Mount* next = find_covering(mounts, *mount, point);
        if (next == nullptr) {
            break;
        }
        mount = next;
    }
    return mount;
}

const Mount* find_root_mount(const std::vector<Mount>& mounts) {
    for (const Mount& mount : mounts) {
        const bool orphan = std::none_of(mounts.begin(), mounts.end(), [&](const Mount& other) {
            return other.id == mount.parent && other.id != mount.id;
        });
        if (mount.point == "/" && orphan) {
            return &mount;
        }
    }
    return nullptr;
}

}  // namespace

std::vector<Mount> parse_mounts(std::string_view mountinfo) {
    std::vector<Mount> mounts;
    for (const std::string_view line : split_text(mountinfo, '\n')) {
        if (auto mount = parse_line(line)) {
            mounts.push_back(std::move(*mount));
        }
    }
    return mounts;
}

std::optional<Mount> find_mount(const std::vector<Mount>& mounts, const std::string& path) {
    const Mount* mount = find_root_mount(mounts);
    if (mount == nullptr) {
        return std::nullopt;
    }
    mount = find_top_of_stack(mounts, mount, "/");
    for (std::size_t end = path.find('/', 1); path.size() > 1; end = path.find('/', end + 1)) {
        mount = find_top_of_stack(mounts, mount, path.substr(0, end));
        if (end == std::string::npos) {
            break;
        }
    }
    return *mount;
}

std::optional<Mount> find_mount(const std::string& path) {
    const std::vector<Mount> mounts = parse_mounts(read_system_file("/proc/self/mountinfo"));
    const ExtendedStatus status = read_extended_status(AT_FDCWD, path);
    for (const Mount& mount : mounts) {
        if (status.mount_id != 0 && static_cast<std::uint64_t>(mount.id) == status.mount_id) {
            return mount;
        }
    }
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
    return real ? find_mount(mounts, std::string(real.get())) : std::nullopt;
}

std::optional<std::string> find_mount_option(const std::string& options, std::string_view name) {
    for (const std::string_view option : split_text(options, ',')) {
        if (option.size() > name.size() && option.substr(0, name.size()) == name && option[name.size()] == '=') {
            return std::string(option.substr(name.size() + 1));
        }
    }
    return std::nullopt;
}

MountStripes parse_mount_stripes(const std::string& type, const std::string& options, std::uint64_t block_bytes) {
    const auto read_option = [&options](std::string_view option, std::uint64_t unit) {
        const auto value = find_mount_option(options, option);
        return value ? std::strtoull(value->c_str(), nullptr, 10) * unit : 0;
    };
    constexpr std::uint64_t xfs_sector_bytes = 512;
    return type == "xfs" ? MountStripes{read_option("sunit", xfs_sector_bytes), read_option("swidth", xfs_sector_bytes)}
           : type == "ext4" ? MountStripes{0, read_option("stripe", block_bytes)}
                            : MountStripes{};
}

ExtendedStatus read_extended_status(int descriptor, const std::string& path) {
    // struct statx has 256 bytes and gets new members in its spare part; glibc before 2.39 lacks these.
    constexpr unsigned want_mount_id = 0x1000;
    constexpr unsigned want_direct_align = 0x2000;
    constexpr std::size_t at_mount_id = 0x90;
    constexpr std::size_t at_memory_align = 0x98;
    constexpr std::size_t at_offset_align = 0x9c;
    alignas(8) std::array<unsigned char, 256> raw{};
    const int flags = path.empty() ? AT_EMPTY_PATH : 0;
    ExtendedStatus status;
    if (::syscall(SYS_statx, descriptor, path.c_str(), flags, want_mount_id | want_direct_align, raw.data()) != 0) {
        return status;
    }
    std::uint32_t mask = 0;
    std::memcpy(&mask, raw.data(), sizeof mask);
    if ((mask & want_mount_id) != 0) {
        std::memcpy(&status.mount_id, raw.data() + at_mount_id, sizeof status.mount_id);
    }
    if ((mask & want_direct_align) != 0) {
        std::memcpy(&status.direct_memory_align, raw.data() + at_memory_align, sizeof status.direct_memory_align);
        std::memcpy(&status.direct_offset_align, raw.data() + at_offset_align, sizeof status.direct_offset_align);
    }
    return status;
}

}  // namespace sonde::records
