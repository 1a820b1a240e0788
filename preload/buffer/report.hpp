// SPDX-License-Identifier: Apache-2.0
// What was done for a file, for people and as JSON.
#pragma once

#include "buffer/statistics.hpp"
#include "settings/params.hpp"

namespace sonde::buffer {

struct File;

/// With the lock of the file held.
void report_file(File& file) noexcept;
/// What is told of a file whose calls were gathered between system calls only.
struct Told {
    const char* path;
    const settings::Rule& rule;
    std::uint64_t page_bytes;
    std::uint64_t opened_ns;
    std::uint64_t gathered;  ///< calls that became part of a larger one
    const Statistics& statistics;
    std::uint64_t call_ns;  ///< of small calls that were made as they are; 0: there were none
    const char* stopped;    ///< why this file in particular, or nullptr
    const char* why;        ///< why none or not all of them, or nullptr
    const char* advice;     ///< a sentence, or nullptr
};
void report_lines(const Told& told) noexcept;
/// Final report; once.
void report_at_end() noexcept;

}  // namespace sonde::buffer
