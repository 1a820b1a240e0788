// SPDX-License-Identifier: Apache-2.0
// Deletes many objects with several requests in flight.
#pragma once

#include "objects/store_settings.hpp"

#include <string>
#include <vector>

namespace sonde::objects {

struct BulkRemoval {
    std::size_t removed = 0;
    std::vector<std::string> failures;  ///< "KEY: reason", one for each object that stays
};

/// Deletes `keys`. Throws std::runtime_error when libcurl cannot be used.
BulkRemoval remove_objects(const StoreSettings& settings, const std::vector<std::string>& keys);

}  // namespace sonde::objects
