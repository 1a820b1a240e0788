// SPDX-License-Identifier: Apache-2.0
#include "files/layout_source.hpp"

#include "files/file_systems.hpp"
#include "files/gpfs_disks.hpp"
#include "files/layout_words.hpp"
#include "files/local_layout.hpp"
#include "records/mounts.hpp"
#include "records/program_output.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace sonde::files {
namespace {

// A composite layout of many stripes is some ten kilobytes; the kernel allows 64 KiB.
constexpr std::size_t longest = 65536;

const char* pretended() {
    return std::getenv("SONDE_PRETEND_LAYOUTS");
}

std::optional<std::string> attribute(const std::string& path, const char* name) {
    std::string value(longest, '\0');
    const ssize_t length = lgetxattr(path.c_str(), name, value.data(), value.size());
    if (length <= 0) {
        return std::nullopt;
    }
    value.resize(static_cast<std::size_t>(length));
    return value;
}

std::string first_word(const std::string& path) {
    std::ifstream file(path);
    std::string word;
    file >> word;
    return word;
}

/// Bytes of a shard of the volume of Gluster that is mounted at `point`; 0: its files are not cut into shards. The
/// client shows its own parts in `.meta`.
std::uint64_t shard_bytes_of(const std::string& point) {
    std::error_code none;
    for (const auto& part : std::filesystem::directory_iterator(point + "/.meta/graphs/active", none)) {
        if (part.path().filename().string().ends_with("-shard")) {
            const std::string bytes = first_word(part.path().string() + "/options/shard-block-size");
            return bytes_in_gluster_words(bytes.empty() ? "64MB" : bytes);
        }
    }
    return 0;
}

/// The same for the file system of a file, which is examined once.
std::uint64_t shard_bytes(const std::string& path) {
    static std::mutex lock;
    static std::map<dev_t, std::uint64_t> cache;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        return 0;
    }
    const std::lock_guard<std::mutex> held(lock);
    const auto match = cache.find(status.st_dev);
    if (match != cache.end()) {
        return match->second;
    }
    const std::optional<records::Mount> mount = records::find_mount(path);
    return cache[status.st_dev] = mount ? shard_bytes_of(mount->point) : 0;
}

bool by_program(Family family) {
    return family == Family::beegfs || family == Family::gpfs;
}

/// What the first of the commands that is there says; empty when none has anything to say. Throws when it does not
/// answer.
std::string answer_of(std::initializer_list<std::vector<std::string>> commands) {
    for (const std::vector<std::string>& command : commands) {
        const records::ProgramOutput output = records::run_and_read(command);
        if (output.late) {
            throw std::runtime_error("`" + command[0] + " " + command[1] + "`: " + output.text);
        }
        if (output.ok()) {
            return output.text;
        }
    }
    return {};
}

/// The disks of the file system of a file, which is asked once for them.
const GpfsDisks& gpfs_disks_of(const std::string& path) {
    static std::mutex lock;
    static std::map<std::string, GpfsDisks> cache;
    const std::optional<records::Mount> mount = records::find_mount(path);
    const std::string device = mount ? mount->source : std::string();
    const std::lock_guard<std::mutex> held(lock);
    const auto match = cache.find(device);
    return match != cache.end() ? match->second : cache[device] = ask_gpfs_disks(device);
}

std::optional<StripeLayout> gpfs_layout(const std::string& path) {
    const GpfsAnswer answer = ask_gpfs({"mmlsattr", "-L", path});
    if (answer.late) {
        throw std::runtime_error("`mmlsattr -L`: " + answer.text);
    }
    if (!answer.ok || answer.text.empty()) {
        return std::nullopt;
    }
    const GpfsDisks& disks = gpfs_disks_of(path);
    StripeLayout layout = parse_gpfs_layout(answer.text, disks);
    layout.unknown = why_pool(layout.components[0].pool, disks);
    return layout;
}

/// By the number that statfs gives for the file system.
std::optional<StripeLayout> layout_by_kind(const std::string& path) {
    constexpr std::uint32_t beegfs = 0x19830326, gpfs = 0x47504653, fuse = 0x65735546, ext = 0xEF53, xfs = 0x58465342;
    struct statfs status {};
    if (::statfs(path.c_str(), &status) != 0) {
        return std::nullopt;
    }
    const auto number = static_cast<std::uint32_t>(status.f_type);
    if (number == beegfs) {
        const std::string text = answer_of({{"beegfs-ctl", "--getentryinfo", path}});
        return text.empty() ? std::nullopt : std::optional(parse_beegfs_layout(text));
    }
    if (number == gpfs) {
        return gpfs_layout(path);
    }
    if (number == fuse) {
        const std::optional<records::Mount> mount = records::find_mount(path);
        if (mount && mount->source.starts_with("mfs#")) {  // "mfs#10.0.0.1:9421"; its type is plain "fuse"
            const std::string text = answer_of({{"mfsfileinfo", path}});
            const bool chunks = text.find("chunk ") != std::string::npos;  // an empty file has none
            return chunks ? std::optional(parse_moosefs_layout(text)) : std::nullopt;
        }
    }
    return number == ext || number == xfs ? layout_on_drives(path) : std::nullopt;
}

}  // namespace

bool has_layouts(const std::string& file_system) {
    return pretended() != nullptr || family_of(file_system) != Family::none;
}

bool has_placement(const std::string& file_system) {
    return pretended() == nullptr && family_of(file_system) == Family::ceph;
}

std::uint64_t most_layouts(const std::string& file_system) {
    // "fuse" and no more is what MooseFS calls itself: mfsfileinfo is small and asks one server; the others are of an
    // administrator's kind.
    const Family family = family_of(file_system);
    const bool few = file_system == "fuse" || (family == Family::local && pretended() == nullptr);
    return few ? 256 : by_program(family) ? 32 : 1024;
}

namespace {

/// From an attribute of the file: cheap enough, and harmless, while operations are timed.
std::optional<StripeLayout> layout_by_attribute(const std::string& path, const CephPlacement* placement) {
    if (const char* folder = pretended()) {
        std::ifstream file(std::string(folder) + path.substr(path.rfind('/')), std::ios::binary);
        if (!file) {
            return std::nullopt;
        }
        std::ostringstream value;
        value << file.rdbuf();
        return parse_lustre_layout(value.str());
    }
    if (const auto value = attribute(path, "lustre.lov")) {
        return parse_lustre_layout(*value);
    }
    if (const auto value = attribute(path, "ceph.file.layout")) {
        struct stat status {};
        const bool placed = placement != nullptr && ::stat(path.c_str(), &status) == 0;
        return placed ? placed_ceph_layout(*value, status.st_ino, *placement) : parse_ceph_layout(*value);
    }
    if (const auto value = attribute(path, "trusted.glusterfs.pathinfo")) {
        return parse_gluster_layout(*value, shard_bytes(path));
    }
    return std::nullopt;
}

}  // namespace

std::optional<StripeLayout> layout_of(const std::string& path, const CephPlacement* placement) {
    std::optional<StripeLayout> layout = layout_by_attribute(path, placement);
    return layout || pretended() != nullptr ? layout : layout_by_kind(path);
}

namespace {

Untold untold_by_attribute(const std::string& path, const char* name) {
    std::array<char, 1> byte{};
    errno = 0;
    if (lgetxattr(path.c_str(), name, byte.data(), byte.size()) >= 0 || errno == ERANGE) {
        return {};
    }
    return {"the attribute `" + std::string(name) + "` of a file: " + std::strerror(errno), {}};
}

Untold untold_by_program(const std::vector<std::string>& command) {
    const records::ProgramOutput output = records::run_and_read(command);
    if (output.ok()) {
        return {};
    }
    return {"`" + command[0] + "`: " + output.last_line(),
            "have `" + command[0] + "` in PATH on the first node of the run, and the right to ask"};
}

Untold untold_of_gluster(const std::string& path) {
    Untold reason = untold_by_attribute(path, "trusted.glusterfs.pathinfo");
    if (!reason.why.empty()) {
        reason.advice = ::geteuid() == 0 ? "a volume that disperses does not tell; nor does one whose servers are gone"
                                         : "Gluster tells root only: run the first node's process as root";
    }
    return reason;
}

}  // namespace

Untold why_untold(const std::string& path, const std::string& file_system) {
    struct stat status {};
    if (pretended() != nullptr || ::stat(path.c_str(), &status) != 0 || status.st_size == 0) {
        return {};
    }
    switch (family_of(file_system)) {
        case Family::lustre:
            return untold_by_attribute(path, "lustre.lov");
        case Family::ceph:
            return untold_by_attribute(path, "ceph.file.layout");
        case Family::gluster:
            return untold_of_gluster(path);
        case Family::beegfs:
            return untold_by_program({"beegfs-ctl", "--getentryinfo", path});
        case Family::gpfs:
            return untold_by_program({"mmlsattr", "-L", path});
        case Family::in_user_space: {
            const std::optional<records::Mount> mount = records::find_mount(path);
            return mount && mount->source.starts_with("mfs#") ? untold_by_program({"mfsfileinfo", path}) : Untold();
        }
        case Family::local:
        case Family::none:
            break;
    }
    return {};
}

patterns::FileStripes stripes_of(const StripeLayout& layout) {
    patterns::FileStripes stripes;
    for (const LayoutComponent& component : layout.components) {
        if (layout.mirrors > 1) {
            return {};
        }
        patterns::StripePart& part = stripes.emplace_back();
        part.start = component.start;
        part.end = component.end;
        part.stripe = component.stripe;
        part.shift = component.shift;
        using Pattern = LayoutComponent::Pattern;
        if (component.pattern == Pattern::metadata_server) {
            part.stripe = 0;
            part.targets = {"MDT"};
        } else if (component.pattern == Pattern::raid0 || component.pattern == Pattern::whole) {
            part.targets = component.targets;
            part.pending = component.targets.empty();
        }
    }
    return stripes;
}

namespace {

/// What `ask` finds in the form of stripes; nothing where it cannot be read: the line `layout` says so in words.
template <class Ask>
patterns::FileStripes stripes_or_none(const Ask& ask) {
    try {
        const std::optional<StripeLayout> layout = ask();
        return layout ? stripes_of(*layout) : patterns::FileStripes();
    } catch (const std::invalid_argument&) {
        return {};
    }
}

}  // namespace

std::function<patterns::FileStripes(const std::string& path)> stripes_asker(const std::string& directory,
                                                                            const std::string& file_system,
                                                                            const CephPlacement* placement) {
    const Family family = family_of(file_system);
    if (pretended() == nullptr && (by_program(family) || family == Family::none)) {
        return {};
    }
    if (family != Family::local || pretended() != nullptr) {
        return [placement](const std::string& path) {
            return stripes_or_none([&] { return layout_by_attribute(path, placement); });
        };
    }
    struct stat status {};
    const auto volume = ::stat(directory.c_str(), &status) == 0 ? volume_below(status.st_dev) : nullptr;
    if (!volume || !divided(*volume)) {
        return {};
    }
    // Files elsewhere would make the first look at their device while operations are timed.
    return [device = status.st_dev](const std::string& path) {
        constexpr std::size_t few = 1024;
        struct stat file {};
        const bool here = ::stat(path.c_str(), &file) == 0 && file.st_dev == device;
        return here ? stripes_or_none([&] { return layout_on_drives(path, few); }) : patterns::FileStripes();
    };
}

}  // namespace sonde::files
