// SPDX-License-Identifier: Apache-2.0
// Files that a test writes next to its summary: the transfers of a stonewalled write (stoneWallingStatusFile) and the
// times of each task (saveRankPerformanceDetailsCSV). What writes returns why the file cannot be written, in one
// sentence, or nothing.
#pragma once

#include "dialects/ior/layout.hpp"

#include <optional>
#include <string>

namespace sonde::dialects::ior {

/// The content of the status file of an earlier write; empty without a file.
std::optional<std::int64_t> read_status(const std::string& path);
std::string store_status(const IorTest& test);
/// Adds the tasks of a write or read.
std::string add_rank_details(const IorSettings& settings, const IorMeasurement& measurement);

}  // namespace sonde::dialects::ior
