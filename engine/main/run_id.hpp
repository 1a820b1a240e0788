// SPDX-License-Identifier: Apache-2.0
// The default name of a run.
#pragma once

#include <string>

namespace sonde {

/// Time (UTC), `name` and the number of this process: "20261121T214554Z-quick-8732".
std::string make_run_id(const std::string& name);

}  // namespace sonde
