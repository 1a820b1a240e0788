// SPDX-License-Identifier: Apache-2.0
#include "layouts/layout_queries.hpp"

#include "layouts/list.hpp"
#include "layouts/lustre.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sonde::layouts {
namespace {

/// The folder of recorded attributes that replaces those of the file system, for tests; nullptr: none.
const char* find_layout_test_folder() {
    return std::getenv("SONDE_PRETEND_LAYOUTS");
}

std::optional<StripeLayout> read_pretended_layout(const std::string& folder, const std::string& path) {
    std::ifstream file(folder + path.substr(path.rfind('/')), std::ios::binary);
    if (!file) {
        return std::nullopt;
    }
    std::ostringstream value;
    value << file.rdbuf();
    return parse_lustre_layout(value.str());
}

/// From an attribute of the file: cheap and harmless while operations are timed.
std::optional<StripeLayout> read_attribute_layout(const std::string& path, const CephPlacement* placement) {
    if (const char* folder = find_layout_test_folder()) {
        return read_pretended_layout(folder, path);
    }
    for (const LayoutSystem* system : list_layout_systems()) {
        if (auto layout = system->read_attribute != nullptr ? system->read_attribute(path, placement) : std::nullopt) {
            return layout;
        }
    }
    return std::nullopt;
}

std::optional<StripeLayout> query_layout(const std::string& path) {
    struct statfs status {};
    if (::statfs(path.c_str(), &status) != 0) {
        return std::nullopt;
    }
    const auto type_number = static_cast<std::uint32_t>(status.f_type);
    for (const LayoutSystem* system : list_layout_systems()) {
        if (auto layout = system->query != nullptr ? system->query(path, type_number) : std::nullopt) {
            return layout;
        }
    }
    return std::nullopt;
}

/// The stripes of the layout that `reader` reads; empty where it cannot be read: the line `layout` reports why.
patterns::FileStripes read_stripes(const LayoutReader& reader, const std::string& path) {
    try {
        const std::optional<StripeLayout> layout = reader(path);
        return layout ? to_file_stripes(*layout) : patterns::FileStripes();
    } catch (const std::invalid_argument&) {
        return {};
    }
}

}  // namespace

bool has_layouts(const std::string& file_system) {
    return find_layout_test_folder() != nullptr || find_layout_system(file_system) != nullptr;
}

bool needs_placement(const std::string& file_system) {
    const LayoutSystem* system = find_layout_system(file_system);
    return find_layout_test_folder() == nullptr && system != nullptr && system->needs_placement;
}

std::uint64_t max_layout_queries(const std::string& file_system) {
    constexpr std::uint64_t max_attributes = 1024;
    const LayoutSystem* system = find_layout_system(file_system);
    return find_layout_test_folder() != nullptr || system == nullptr ? max_attributes : system->max_queries;
}

std::optional<StripeLayout> read_layout(const std::string& path, const CephPlacement* placement) {
    std::optional<StripeLayout> layout = read_attribute_layout(path, placement);
    return layout || find_layout_test_folder() != nullptr ? layout : query_layout(path);
}

MissingLayout explain_missing_layout(const std::string& path, const std::string& file_system) {
    struct stat status {};
    const LayoutSystem* system = find_layout_system(file_system);
    const bool expected = find_layout_test_folder() == nullptr && system != nullptr &&
                          system->explain_missing != nullptr && ::stat(path.c_str(), &status) == 0 &&
                          status.st_size > 0;
    return expected ? system->explain_missing(path) : MissingLayout();
}

patterns::FileStripes to_file_stripes(const StripeLayout& layout) {
    patterns::FileStripes stripes;
    for (const LayoutComponent& component : layout.components) {
        if (layout.mirror_count > 1) {
            return {};
        }
        patterns::StripePart& part = stripes.emplace_back();
        part.start = component.start;
        part.end = component.end;
        part.stripe = component.stripe_bytes;
        part.shift = component.shift_bytes;
        using Pattern = LayoutComponent::Pattern;
        if (component.pattern == Pattern::metadata_server) {
            part.stripe = 0;
            part.targets = {"MDT"};
        } else if (component.pattern == Pattern::raid0 || component.pattern == Pattern::whole) {
            part.targets = component.targets;
            part.is_pending = component.targets.empty();
        }
    }
    return stripes;
}

std::function<patterns::FileStripes(const std::string& path)> make_stripes_reader(const std::string& directory,
                                                                                  const std::string& file_system,
                                                                                  const CephPlacement* placement) {
    LayoutReader reader = [placement](const std::string& path) { return read_attribute_layout(path, placement); };
    if (find_layout_test_folder() == nullptr) {
        const LayoutSystem* system = find_layout_system(file_system);
        if (system == nullptr || !system->readable_while_timed) {
            return {};
        }
        reader = system->make_timed_reader != nullptr ? system->make_timed_reader(directory) : reader;
    }
    if (!reader) {
        return {};
    }
    return [reader = std::move(reader)](const std::string& path) { return read_stripes(reader, path); };
}

}  // namespace sonde::layouts
