// SPDX-License-Identifier: Apache-2.0
// Whether what came back is what was written, and if not, what it is instead.
#pragma once

#include "payload/payload.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace sonde::payload {

/// The first wrong bytes of one operation.
struct Mismatch {
    enum class MismatchKind {
        changed,    ///< bytes differ, the stamp is right
        displaced,  ///< another granule of the same file
        foreign,    ///< a granule of another file
        stale,      ///< an earlier generation
        torn,       ///< one granule holds parts of two generations
        zeros,      ///< never written, or lost
        truncated,  ///< the file ends before
    };
    MismatchKind kind = MismatchKind::changed;
    std::uint64_t offset = 0;       ///< of the first wrong byte in the file
    std::uint64_t bytes = 0;        ///< wrong bytes in the operation
    std::string describe_mismatch;  ///< "holds offset 8192 of the same file, generation 1"
};

/// Compares what a read returned with what was written at `offset` of the file, both in bytes: `expected` makes that.
/// `got` bytes of `length` arrived (fewer = truncated file). Nothing when all is right.
std::optional<Mismatch> compare(PayloadImage& expected, const std::byte* data, std::uint64_t offset,
                                std::uint64_t length, std::uint64_t got);

/// "changed", "displaced", … for sentences.
const char* kind_name(Mismatch::MismatchKind kind);

}  // namespace sonde::payload
