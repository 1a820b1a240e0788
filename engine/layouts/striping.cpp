// SPDX-License-Identifier: Apache-2.0
#include "layouts/striping.hpp"

#include "layouts/layout_system.hpp"
#include "layouts/list.hpp"
#include "layouts/lustre.hpp"
#include "plan/units.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sonde::layouts {
namespace {

/// Throws for a rejected request, with the meaning of `error`.
[[noreturn]] void throw_not_granted(const plan::Striping& requested, const std::string& path, int error) {
    const char* advice = error == EINVAL || error == ENOENT || error == ERANGE || error == EDOM
                             ? ": is there such a target or pool, and such a size?"
                         : error == EPERM || error == EACCES ? ": this user may not set it there"
                         : error == EOPNOTSUPP || error == ENOTTY
                             ? ": the file system does not stripe files; leave target.striping out"
                             : "";
    throw_invalid_striping("target.striping (" + describe_striping(requested) + ") was not granted at " + path + ": " +
                           std::strerror(error) + advice);
}

/// Throws when the file system takes no request.
const StripingSetter& require_striping_setter(const std::string& file_system, const std::string& path) {
    const LayoutSystem* system = find_layout_system(file_system);
    if (system == nullptr || system->striping == nullptr) {
        throw_invalid_striping(
            "target.striping: " + path + " is on " + (file_system.empty() ? "an unknown file system" : file_system) +
            ", which is not told how to stripe files: leave it out, or name a target on Lustre, BeeGFS or CephFS");
    }
    return *system->striping;
}

}  // namespace

void check_striping(const plan::Striping& requested, const std::string& file_system, const std::string& path,
                    bool own_directory) {
    require_striping_setter(file_system, path).check_plan(requested, own_directory);
}

void stripe_directory(const plan::Striping& requested, const std::string& file_system,
                      const files::ConfinedDirectory& directory) {
    const StripingSetter& setter = require_striping_setter(file_system, directory.path());
    if (const int error = setter.stripe_directory(requested, directory); error != 0) {
        throw_not_granted(requested, directory.path(), error);
    }
}

void make_striped_file(const plan::Striping& requested, const std::string& file_system,
                       const files::ConfinedDirectory& parent, const std::string& name) {
    const std::string path = parent.path() + "/" + name;
    const StripingSetter& setter = require_striping_setter(file_system, path);
    const int error = parent.error() != 0 ? parent.error() : setter.make_file(requested, parent, name);
    if (error == EEXIST) {
        throw_invalid_striping("cannot make " + path + " with the stripes of target.striping: it is there already");
    }
    if (error != 0) {
        throw_not_granted(requested, path, error);
    }
}

std::string describe_difference(const plan::Striping& requested, const StripeLayout& granted) {
    std::string text;
    const auto add = [&text](const std::string& change) { text += (text.empty() ? "" : ", ") + change; };
    if (granted.components.size() != 1) {
        return "a layout of " + std::to_string(granted.components.size()) + " components instead of one";
    }
    const LayoutComponent& component = granted.components.front();
    if (requested.count && *requested.count > 0 &&
        component.requested_stripes != static_cast<std::uint64_t>(*requested.count)) {
        add(std::to_string(component.requested_stripes) + (component.requested_stripes == 1 ? " target" : " targets") +
            " instead of " + std::to_string(*requested.count));
    }
    if (requested.size && component.stripe_bytes != *requested.size) {
        add("stripes of " + plan::format_bytes(component.stripe_bytes) + " instead of " +
            plan::format_bytes(*requested.size));
    }
    if (!requested.pool.empty() && component.pool != requested.pool) {
        add((component.pool.empty() ? "no pool" : "pool " + component.pool) + " instead of pool " + requested.pool);
    }
    if (requested.start && !component.targets.empty() &&
        component.targets.front() != make_lustre_target_name(*requested.start)) {
        add("the first byte on " + component.targets.front() + " instead of " +
            make_lustre_target_name(*requested.start));
    }
    return text;
}

}  // namespace sonde::layouts
