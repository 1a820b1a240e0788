// SPDX-License-Identifier: Apache-2.0
// Streams of the C library with larger buffers (stdio=alone). What a stream moves never passes through our functions,
// so the one thing that can be done for it is what the program itself could do: setvbuf(), right after it was opened.
//
// Not done unasked, because nobody can prove it equal: after fwrite() of 10,000 bytes 8,192 are in the file where a
// stream has 4 KiB, and none where it has more. Whoever looks at the file by another way then sees the difference:
// another process, a second descriptor, fstat(fileno()), a child that inherits what is not written yet.
#pragma once

#include "settings/params.hpp"

#include <cstddef>
#include <cstdio>

namespace sonde::intercept {

/// Before any stream is opened.
void start_c_streams(settings::Settings& settings) noexcept;
/// Gives a stream that was just opened as `path` a larger buffer if a rule covers it. Returns whether it has one.
bool enlarge_stream_buffer(FILE* stream, const char* path, const char* mode) noexcept;

/// Keeps the buffer of a stream until fclose() has returned, then frees it.
class ClosingStream {
 public:
    explicit ClosingStream(FILE* stream) noexcept;
    ~ClosingStream();
    ClosingStream(const ClosingStream&) = delete;
    ClosingStream& operator=(const ClosingStream&) = delete;

 private:
    void* buffer_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Flushes these streams before fork(); otherwise both processes would write their content when they end.
void write_out_streams() noexcept;
/// In the child of a fork.
void reset_c_streams_after_fork() noexcept;

}  // namespace sonde::intercept
