// SPDX-License-Identifier: Apache-2.0
#include "layouts/gpfs.hpp"

#include "layouts/layout_system.hpp"
#include "layouts/text_fields.hpp"
#include "records/mounts.hpp"

#include <map>
#include <mutex>
#include <stdexcept>

namespace sonde::layouts {
namespace {

/// The disks of the file system that holds the file; each file system is queried once.
const GpfsDisks& find_gpfs_disks(const std::string& path) {
    static std::mutex lock;
    static std::map<std::string, GpfsDisks> cache;
    const std::optional<records::Mount> mount = records::find_mount(path);
    const std::string device = mount ? mount->source : std::string();
    const std::lock_guard<std::mutex> held(lock);
    const auto match = cache.find(device);
    return match != cache.end() ? match->second : cache[device] = query_gpfs_disks(device);
}

std::optional<StripeLayout> query_gpfs_layout(const std::string& path, std::uint32_t type_number) {
    constexpr std::uint32_t gpfs_type = 0x47504653;
    if (type_number != gpfs_type) {
        return std::nullopt;
    }
    const GpfsOutput output = run_gpfs_program({"mmlsattr", "-L", path});
    if (output.timed_out) {
        throw std::runtime_error("`mmlsattr -L`: " + output.text);
    }
    if (!output.ok || output.text.empty()) {
        return std::nullopt;
    }
    const GpfsDisks& disks = find_gpfs_disks(path);
    StripeLayout layout = parse_gpfs_layout(output.text, disks);
    layout.unknown_facts = explain_unknown_disk(layout.components[0].pool, disks);
    return layout;
}

MissingLayout explain_missing_gpfs_layout(const std::string& path) {
    return explain_program_failure({"mmlsattr", "-L", path});
}

}  // namespace

StripeLayout parse_gpfs_layout(std::string_view text, const GpfsDisks& disks) {
    StripeLayout layout;
    LayoutComponent& component = add_single_component(layout, "gpfs");
    const auto pool = find_field(text, "storage pool name:");
    if (!pool || pool->empty()) {
        throw_invalid_layout("mmlsattr", "names no storage pool");
    }
    component.pattern = LayoutComponent::Pattern::whole;
    component.pool = *pool;
    component.targets = {"pool " + component.pool};
    component.requested_stripes = 1;
    const auto members = disks.disks_of_pool.find(component.pool);
    if (members != disks.disks_of_pool.end()) {
        component.target_members = members->second;
    }
    // "data replication:     2 max 2": each block lies in the pool twice, on different disks.
    const auto copies = find_field(text, "data replication:");
    std::string_view remainder;
    layout.mirror_count = copies && parse_number(*copies, &remainder) == 2 ? 2 : 1;
    if (layout.mirror_count == 2) {
        layout.components.push_back(LayoutComponent(component));
    }
    return layout;
}

extern const LayoutSystem gpfs_system;
const LayoutSystem gpfs_system{
    .types = {"gpfs"},
    .max_queries = 32,  // each starts a program
    .read_attribute = nullptr,
    .query = query_gpfs_layout,
    .explain_missing = explain_missing_gpfs_layout,
    .striping = nullptr,
    .readable_while_timed = false,
};

}  // namespace sonde::layouts
