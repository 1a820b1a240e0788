// SPDX-License-Identifier: Apache-2.0
// Streams of C++ (std::ofstream and its kin in libstdc++): they open with fopen64() and then read, write and seek by
// the descriptor alone; the FILE only keeps it. So their files can be buffered, where those of C's streams cannot,
// whose calls stay inside libc.
#pragma once

namespace sonde::intercept {

/// True when `caller` is code of a libstdc++ that works in this way. Whoever links it statically, and other C++
/// libraries (LLVM's uses fread and fwrite), are not recognized: their streams are C's.
bool is_cxx_stream(const void* caller) noexcept;

}  // namespace sonde::intercept
