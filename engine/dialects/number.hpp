// SPDX-License-Identifier: Apache-2.0
// Numbers as IOR, mdtest and md-workbench read them, which share one reader.
#pragma once

#include <cstdint>
#include <string>

namespace sonde::dialects {

/// A whole number, with k, m, g, t or p for powers of 1024; the letter may be followed by b or ib (4k, 4KB, 4KiB are
/// all 4096), and b alone is bytes. Decimals are cut off, as those tools do: 1.5 is 1, and 10.9 is 10. Refused, because
/// they would not be what was meant: other letters (which the tools ignore), and decimals before a unit (1.5m is 1 for
/// them). `name` stands before "is …" in messages, and may be empty. Throws plan::PlanError.
std::int64_t read_scaled_number(const std::string& text, const std::string& name);

/// The same, from `least` to `most`; the message says the limits.
std::int64_t read_scaled_number(const std::string& text, const std::string& name, std::int64_t least,
                                std::int64_t most);

}  // namespace sonde::dialects
