// SPDX-License-Identifier: Apache-2.0
// The names of the ways to bring the processes of a run together, as on the command line.
#pragma once

#include "ranks/launcher.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sonde {

struct LaunchName {
    std::string_view name;
    ranks::LaunchMode launch;
};

inline constexpr std::array launch_names{
    LaunchName{"auto", ranks::LaunchMode::automatic}, LaunchName{"single", ranks::LaunchMode::single},
    LaunchName{"forked", ranks::LaunchMode::forked}, LaunchName{"node", ranks::LaunchMode::node},
    LaunchName{"mpi", ranks::LaunchMode::mpi}};

inline std::optional<ranks::LaunchMode> find_launch(std::string_view name) {
    for (const LaunchName& row : launch_names) {
        if (row.name == name) {
            return row.launch;
        }
    }
    return std::nullopt;
}

/// "auto, single, forked, node or mpi"
inline std::string list_launch_names() {
    std::string text;
    for (std::size_t i = 0; i < launch_names.size(); ++i) {
        text += i == 0 ? "" : i + 1 < launch_names.size() ? ", " : " or ";
        text += launch_names[i].name;
    }
    return text;
}

}  // namespace sonde
