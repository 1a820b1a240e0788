// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace sonde::bench {

/// Seconds for all items, by operation.
struct NamesCount {
    double create = 0, stat = 0, open_close = 0, remove = 0;
};

/// Makes, looks at, opens and removes `items` empty files in `folder`, by whole paths or by names relative to it.
/// Throws RawError.
NamesCount names_loop(const std::string& folder, std::size_t items, bool full);

}  // namespace sonde::bench
