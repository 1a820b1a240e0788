// SPDX-License-Identifier: Apache-2.0
// Stands in where liburing was not found.
#include "raw.hpp"

namespace sonde::bench {

Count uring_loop(const Task& /*task*/) {
    throw RawError("built without liburing");
}

}  // namespace sonde::bench
