// SPDX-License-Identifier: Apache-2.0
#include "files/layout_source.hpp"

#include "files/layout_words.hpp"
#include "records/mounts.hpp"
#include "records/program_output.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <system_error>

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

/// The same for the file system of a file, which is looked at once.
std::uint64_t shard_bytes(const std::string& path) {
    static std::mutex lock;
    static std::map<dev_t, std::uint64_t> known;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        return 0;
    }
    const std::lock_guard<std::mutex> held(lock);
    const auto found = known.find(status.st_dev);
    if (found != known.end()) {
        return found->second;
    }
    const std::optional<records::Mount> mount = records::mount_of(path);
    return known[status.st_dev] = mount ? shard_bytes_of(mount->point) : 0;
}

bool by_program(const std::string& file_system) {
    return file_system == "beegfs" || file_system == "gpfs";
}

/// By the number that statfs gives for the file system.
std::optional<StripeLayout> layout_by_program(const std::string& path) {
    constexpr std::uint32_t beegfs = 0x19830326, gpfs = 0x47504653, fuse = 0x65735546;
    struct statfs told {};
    if (::statfs(path.c_str(), &told) != 0) {
        return std::nullopt;
    }
    const auto number = static_cast<std::uint32_t>(told.f_type);
    if (number == beegfs) {
        const records::ProgramOutput said = records::output_of({"beegfs-ctl", "--getentryinfo", path});
        return said.ok() ? std::optional(parse_beegfs_layout(said.text)) : std::nullopt;
    }
    if (number == gpfs) {
        records::ProgramOutput said = records::output_of({"mmlsattr", "-L", path});
        said = said.ok() ? said : records::output_of({"/usr/lpp/mmfs/bin/mmlsattr", "-L", path});  // seldom in PATH
        return said.ok() ? std::optional(parse_gpfs_layout(said.text)) : std::nullopt;
    }
    if (number == fuse) {
        const std::optional<records::Mount> mount = records::mount_of(path);
        if (mount && mount->source.starts_with("mfs#")) {  // "mfs#10.0.0.1:9421"; its type is plain "fuse"
            const records::ProgramOutput said = records::output_of({"mfsfileinfo", path});
            const bool chunks = said.text.find("chunk ") != std::string::npos;  // an empty file has none
            return said.ok() && chunks ? std::optional(parse_moosefs_layout(said.text)) : std::nullopt;
        }
    }
    return std::nullopt;
}

}  // namespace

bool has_layouts(const std::string& file_system) {
    return pretended() != nullptr || file_system == "lustre" || file_system.find("gluster") != std::string::npos ||
           file_system.starts_with("fuse") || file_system == "ceph" || by_program(file_system);
}

bool has_placement(const std::string& file_system) {
    return pretended() == nullptr && (file_system == "ceph" || file_system.starts_with("fuse.ceph"));
}

std::uint64_t most_layouts(const std::string& file_system) {
    // "fuse" and no more is what MooseFS calls itself: mfsfileinfo is small and asks one server; the others are of an
    // administrator's kind.
    return file_system == "fuse" ? 256 : by_program(file_system) ? 32 : 1024;
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
    return layout || pretended() != nullptr ? layout : layout_by_program(path);
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

patterns::FileStripes stripes_of(const std::string& path, const CephPlacement* placement) {
    try {
        const std::optional<StripeLayout> layout = layout_by_attribute(path, placement);
        return layout ? stripes_of(*layout) : patterns::FileStripes();
    } catch (const std::invalid_argument&) {
        return {};  // the line `layout` says so in words
    }
}

}  // namespace sonde::files
