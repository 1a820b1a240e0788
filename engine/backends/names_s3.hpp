// SPDX-License-Identifier: Apache-2.0
// Names of an object store: items are objects, directories are prefixes of their keys.
#pragma once

#include "backends/names.hpp"
#include "objects/client.hpp"

#include <memory>

namespace sonde::backends {

/// `client` must outlive it; its failure() explains errors.
std::unique_ptr<NameOperations> make_s3_name_operations(objects::StoreClient& client);

}  // namespace sonde::backends
