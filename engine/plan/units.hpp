// SPDX-License-Identifier: Apache-2.0
// Quantities as people write them: "4KiB" is 4096, "4kB" is 4000, and a bare "4k" is refused because it could be
// either.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::plan {

/// Each throws std::invalid_argument with the reason ("'4k' is ambiguous: write 4KiB (4096 bytes) or 4kB (4000
/// bytes)").
std::uint64_t parse_bytes(std::string_view text);
std::int64_t parse_duration(std::string_view text);  ///< nanoseconds; a bare number is seconds
double parse_rate(std::string_view text);            ///< bytes per second, "100MB/s"

/// "1.5 GiB", "10 kB", "17 B": exact where possible, for messages.
std::string format_bytes(std::uint64_t bytes);

}  // namespace sonde::plan
