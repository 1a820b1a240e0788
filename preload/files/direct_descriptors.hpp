// SPDX-License-Identifier: Apache-2.0
// Descriptors with O_DIRECT that the library opens for itself. The program can have any of their numbers.
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

/// Opens the missing O_DIRECT descriptors of a file, unless descriptors are scarce. Requires the lock of the file.
void open_direct_descriptors_of(File& file, int fd, bool reads, bool writes) noexcept;
/// Descriptors that are open now.
int count_direct_descriptors() noexcept;
/// The file, locked, needs them no longer.
void close_direct_descriptors_of(File& file) noexcept;
}  // namespace sonde::buffer
