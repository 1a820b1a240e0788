// SPDX-License-Identifier: Apache-2.0
// Sonde's own figures next to the columns of IOR.
#pragma once

#include "dialects/ior/layout.hpp"

#include <ostream>
#include <vector>

namespace sonde::dialects::ior {

/// A line for each write and read, and one for each kind of finding. All begin with "sonde: ", and none has a word with
/// which IOR begins a row: output and errors often end up in one file.
void print_sonde_figures(std::ostream& out, const std::vector<const IorTest*>& tests);

}  // namespace sonde::dialects::ior
