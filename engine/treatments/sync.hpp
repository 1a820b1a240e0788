// SPDX-License-Identifier: Apache-2.0
// Writing dirty data back, on its own or before something that only clean pages can bear.
#pragma once

#include "treatments/kind.hpp"

#include <string>

namespace sonde::treatments {

/// Writes all dirty data of the file system that holds `directory` back. Outcome done or failed.
TreatmentResult write_back(const std::string& directory, const StopAsked& stop);

}  // namespace sonde::treatments
