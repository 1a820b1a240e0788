// SPDX-License-Identifier: Apache-2.0
#include "files/layout_source.hpp"

#include "files/layout_words.hpp"
#include "records/program_output.hpp"

#include <sys/vfs.h>
#include <sys/xattr.h>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

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

bool by_program(const std::string& file_system) {
    return file_system == "beegfs" || file_system == "gpfs";
}

/// By the number that statfs gives for the file system.
std::optional<StripeLayout> layout_by_program(const std::string& path) {
    constexpr std::uint32_t beegfs = 0x19830326, gpfs = 0x47504653;
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
    return std::nullopt;
}

}  // namespace

bool has_layouts(const std::string& file_system) {
    return pretended() != nullptr || file_system == "lustre" || file_system.find("gluster") != std::string::npos ||
           file_system.starts_with("fuse") || file_system == "ceph" || by_program(file_system);
}

std::uint64_t most_layouts(const std::string& file_system) {
    return by_program(file_system) ? 32 : 1024;
}

namespace {

/// From an attribute of the file: cheap enough, and harmless, while operations are timed.
std::optional<StripeLayout> layout_by_attribute(const std::string& path) {
    if (const char* folder = pretended()) {
        std::ifstream file(std::string(folder) + path.substr(path.rfind('/')), std::ios::binary);
        if (!file) {
            return std::nullopt;
        }
        std::ostringstream value;
        value << file.rdbuf();
        return parse_lustre_layout(value.str());
    }
    using Parse = StripeLayout (*)(std::string_view);
    constexpr std::array<std::pair<const char*, Parse>, 3> known{
        {{"lustre.lov", parse_lustre_layout},
         {"ceph.file.layout", parse_ceph_layout},
         {"trusted.glusterfs.pathinfo", parse_gluster_layout}}};
    for (const auto& [name, parse] : known) {
        if (const auto value = attribute(path, name)) {
            return parse(*value);
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<StripeLayout> layout_of(const std::string& path) {
    std::optional<StripeLayout> layout = layout_by_attribute(path);
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

patterns::FileStripes stripes_of(const std::string& path) {
    try {
        const std::optional<StripeLayout> layout = layout_by_attribute(path);
        return layout ? stripes_of(*layout) : patterns::FileStripes();
    } catch (const std::invalid_argument&) {
        return {};  // the line `layout` says so in words
    }
}

}  // namespace sonde::files
