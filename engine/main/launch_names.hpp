// SPDX-License-Identifier: Apache-2.0
// The words for how the processes come together.
#pragma once

#include "ranks/team.hpp"

#include <optional>
#include <string_view>

namespace sonde {

inline std::optional<ranks::Launch> launch_named(std::string_view name) {
    if (name == "auto") {
        return ranks::Launch::automatic;
    }
    if (name == "single") {
        return ranks::Launch::single;
    }
    if (name == "forked") {
        return ranks::Launch::forked;
    }
    if (name == "node") {
        return ranks::Launch::node;
    }
    return name == "mpi" ? std::optional(ranks::Launch::mpi) : std::nullopt;
}

}  // namespace sonde
