// SPDX-License-Identifier: Apache-2.0
// The treatment `sync`: writes dirty data back, also before treatments that need clean pages.
#pragma once

#include "treatments/treatment_kind.hpp"

#include <string>

namespace sonde::treatments {

/// Writes back all dirty data of the file system of `directory`. Status done or failed.
TreatmentResult write_back(const std::string& directory, const StopPredicate& stop);

}  // namespace sonde::treatments
