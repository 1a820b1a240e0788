// SPDX-License-Identifier: Apache-2.0
#include "layouts/beegfs.hpp"

#include "layouts/layout_system.hpp"
#include "layouts/text_fields.hpp"
#include "records/program_output.hpp"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

namespace sonde::layouts {
namespace {

struct BeegfsHints {
    const char* name;
    unsigned mode, targets, chunk;  // 0: as the directory has it
};
const unsigned long make_file_request = _IOW('f', 27, BeegfsHints);

/// "4201 @ oss-4-4-stor2 [ID: 42]" or, of a mirror, "2".
std::string beegfs_target(std::string_view text) {
    const std::size_t separator = text.find(" @ ");
    if (separator == std::string_view::npos) {
        return "buddy group " + std::string(text);
    }
    const std::size_t node = separator + 3;
    return std::string(text.substr(0, separator)) + "@" +
           std::string(trim(text.substr(node, text.find(" [", node) - node)));
}

void check_beegfs(const plan::Striping& requested, bool own_directory) {
    if (requested.start) {
        throw_invalid_striping("target.striping.start: BeeGFS chooses the first target itself; leave it out");
    }
    if (requested.count && *requested.count < 0) {
        throw_invalid_striping("target.striping.count is -1, but BeeGFS has no word for all targets: say how many");
    }
    if (requested.size && (*requested.size & (*requested.size - 1)) != 0) {
        throw_invalid_striping("target.striping.size: chunks of BeeGFS are powers of two from 64 KiB");
    }
    if (!requested.pool.empty() && !own_directory) {
        throw_invalid_striping(
            "target.striping.pool: BeeGFS has pools for directories only; let the run make its own, or prepare it");
    }
    if (!std::all_of(requested.pool.begin(), requested.pool.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        throw_invalid_striping("target.striping.pool is \"" + requested.pool +
                               "\", but BeeGFS wants the number of a pool (`beegfs-ctl --liststoragepools`)");
    }
}

int make_beegfs_file(const plan::Striping& requested, const files::ConfinedDirectory& parent, const std::string& name) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    BeegfsHints hints{name.c_str(), 0666U & ~mask, static_cast<unsigned>(requested.count.value_or(0)),
                      static_cast<unsigned>(requested.size.value_or(0))};
    return ::ioctl(parent.descriptor(), make_file_request, &hints) == 0 ? 0 : errno;
}

/// Throws when `beegfs-ctl` refuses.
int stripe_beegfs_directory(const plan::Striping& requested, const files::ConfinedDirectory& directory) {
    const records::ProgramOutput output = records::run_and_read(make_beegfs_command(requested, directory.path()));
    if (!output.succeeded()) {
        throw_invalid_striping("target.striping (" + describe_striping(requested) + ") was not granted at " +
                               directory.path() + ": beegfs-ctl --setpattern says: " + output.first_line());
    }
    return 0;
}

std::optional<StripeLayout> query_beegfs_layout(const std::string& path, std::uint32_t type_number) {
    constexpr std::uint32_t beegfs_type = 0x19830326;
    if (type_number != beegfs_type) {
        return std::nullopt;
    }
    const std::string text = run_layout_program({"beegfs-ctl", "--getentryinfo", path});
    return text.empty() ? std::nullopt : std::optional(parse_beegfs_layout(text));
}

MissingLayout explain_missing_beegfs_layout(const std::string& path) {
    return explain_program_failure({"beegfs-ctl", "--getentryinfo", path});
}

constexpr StripingSetter beegfs_striping{check_beegfs, stripe_beegfs_directory, make_beegfs_file};

}  // namespace

StripeLayout parse_beegfs_layout(std::string_view text) {
    StripeLayout layout;
    LayoutComponent& component = add_single_component(layout, "beegfs");
    const auto chunk = find_field(text, "+ Chunksize:");
    component.stripe_bytes = chunk ? parse_size(*chunk).value_or(0) : 0;
    if (component.stripe_bytes == 0) {
        throw_invalid_layout("beegfs-ctl", "has no chunk size");
    }
    if (const auto pool = find_field(text, "+ Storage Pool:")) {
        component.pool = pool->substr(0, pool->find(' '));
    }
    std::size_t line_end = text.find("+ Storage targets:");
    line_end = line_end == std::string_view::npos ? text.find("+ Storage mirror buddy groups:") : line_end;
    line_end = line_end == std::string_view::npos ? line_end : text.find('\n', line_end);
    while (line_end != std::string_view::npos) {
        const std::size_t end = std::min(text.find('\n', line_end + 1), text.size());
        const std::string_view line = trim(text.substr(line_end + 1, end - line_end - 1));
        if (!line.starts_with("+ ")) {
            break;
        }
        component.targets.push_back(beegfs_target(trim(line.substr(2))));
        line_end = end < text.size() ? end : std::string_view::npos;
    }
    if (component.targets.empty()) {
        throw_invalid_layout("beegfs-ctl", "names no target");
    }
    component.requested_stripes = static_cast<std::uint32_t>(component.targets.size());
    return layout;
}

std::vector<std::string> make_beegfs_command(const plan::Striping& requested, const std::string& directory) {
    std::vector<std::string> arguments{"beegfs-ctl", "--setpattern"};
    if (requested.count) {
        arguments.push_back("--numtargets=" + std::to_string(*requested.count));
    }
    if (requested.size) {
        arguments.push_back("--chunksize=" + std::to_string(*requested.size));
    }
    if (!requested.pool.empty()) {
        arguments.push_back("--storagepoolid=" + requested.pool);
    }
    arguments.push_back(directory);
    return arguments;
}

extern const LayoutSystem beegfs_system;
const LayoutSystem beegfs_system{
    .types = {"beegfs", "fhgfs"},  // its name before 2014
    .max_queries = 32,             // each starts a program
    .read_attribute = nullptr,
    .query = query_beegfs_layout,
    .explain_missing = explain_missing_beegfs_layout,
    .striping = &beegfs_striping,
    .readable_while_timed = false,
};

}  // namespace sonde::layouts
