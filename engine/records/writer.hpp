// SPDX-License-Identifier: Apache-2.0
// The record on disk: one JSON object a line, each written by one system call, so that a crash keeps whole lines.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::records {

class Writer {
 public:
    /// Appends to `path` (made if missing); "-" = standard output; empty = nowhere. Throws std::runtime_error with one
    /// sentence. `epoch_ns` = CLOCK_MONOTONIC at the start of the run: `t` counts from it.
    Writer(const std::string& path, std::int64_t epoch_ns);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    /// Moves time zero (a later stage continues the time of the first one).
    void set_epoch(std::int64_t epoch_ns) { epoch_ns_ = epoch_ns; }
    /// Adds `type` and `t` and writes the line. A full disk does not stop the run: the first failure is kept.
    void line(const char* type, nlohmann::ordered_json content);
    /// Empty, or one sentence about the first line that could not be written.
    const std::string& trouble() const { return trouble_; }

 private:
    std::string path_;
    int descriptor_ = -1;
    std::int64_t epoch_ns_;
    std::string trouble_;
};

}  // namespace sonde::records
