// SPDX-License-Identifier: Apache-2.0
// A buffered file with dirty data, and the state of its buffering.
#pragma once

#include "buffered.hpp"

#include <doctest/doctest.h>

#include <string>

namespace under_test {

inline buffer::Mode mode_of(int fd) {
    return file_of(fd).mode.load();
}

/// Returns the reason why a file was released; empty while it is buffered.
inline std::string why(int fd) {
    const char* reason = file_of(fd).release_reason;
    return reason != nullptr ? reason : "";
}

// Nothing becomes old while a test runs.
constexpr const char* quiet = "*:size=4k:count=4,%process:age=600";

/// Fills a file with clean and dirty data, of which 500 bytes are only in the buffer.
struct Held {
    Folder folder;
    std::string path = folder.path + "/data";
    std::string text = std::string(500, 'x');
    int fd;
    explicit Held(const char* params, int flags = O_RDWR | O_CREAT) {
        use(params);
        fd = open_buffered(path, flags);
        REQUIRE(write_at(fd, text.data(), 500, 0) == 500);
        REQUIRE(contents(path) == "");
    }
    ~Held() { CHECK(close_buffered(fd) == 0); }
};

}  // namespace under_test
