// SPDX-License-Identifier: Apache-2.0
// Copies to or from mapped files where a page may turn out not to exist: the file was truncated, the disk is full.
#pragma once

#include <cstddef>

namespace sonde::backends {

/// Makes SIGBUS survivable for guarded_copy() in this process; safe to call again. A SIGBUS from elsewhere is handed to
/// the handler that was there before.
void install_fault_guard();

/// A range of a mapping that may fault.
struct MappedRange {
    const std::byte* base = nullptr;
    std::size_t bytes = 0;
};

/// memcpy(to, from, bytes), of which one side lies in `mapped`. Null when all bytes were copied, else the address in
/// the mapping whose page could not be had; then an unknown part has been copied. Costs no system call.
const std::byte* guarded_copy(void* to, const void* from, std::size_t bytes, MappedRange mapped) noexcept;

}  // namespace sonde::backends
