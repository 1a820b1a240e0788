// SPDX-License-Identifier: Apache-2.0
// Descriptors of our own with O_DIRECT, and the program's right to all of its numbers.
#pragma once

#include "model/file.hpp"
#include "system/text.hpp"

#include <cstring>

namespace sonde::buffer {

/// /proc/self/fd/N
struct DescriptorName {
    explicit DescriptorName(int fd) noexcept {
        system::Text name;
        name << "/proc/self/fd/" << fd << '\0';
        std::memcpy(text, name.data(), name.length());
    }
    char text[32];
};

/// Opens what is missing for a file, locked, whose descriptor `fd` is; nothing where numbers are scarce.
void add_direct(File& file, int fd, bool reads, bool writes) noexcept;
/// Descriptors that are open now.
int count_direct() noexcept;
/// The file, locked, needs them no longer.
void remove_direct(File& file) noexcept;
}  // namespace sonde::buffer
