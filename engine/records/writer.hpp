// SPDX-License-Identifier: Apache-2.0
// Writes the record: one JSON object per line, each with one system call, so that a crash leaves complete lines.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace sonde::records {

/// Shared memory of the engine and its monitor, which write one record: serializes lines that are longer than an atomic
/// pipe write.
struct WriterLock {
    std::atomic<std::uint32_t> engine{0}, monitor{0};  ///< 1 = is writing a line
};

class Writer {
 public:
    enum class Role { engine, monitor };

    /// Appends to `descriptor`, which the caller owns and keeps open; negative = no file. `path` is for messages.
    /// `epoch_ns` is CLOCK_MONOTONIC at the start of the run, from which `t` counts.
    Writer(int descriptor, std::string path, std::int64_t epoch_ns)
        : path_(std::move(path)), descriptor_(descriptor), epoch_ns_(epoch_ns) {}
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    /// Sets time zero (a later stage continues the time of the first one).
    void set_epoch(std::int64_t epoch_ns) { epoch_ns_ = epoch_ns; }
    /// Sets the clock (ns) for `t`; a simulation has its own time.
    void set_clock(std::function<std::int64_t()> now) { now_ = std::move(now); }
    /// Serializes lines with the other process from now on; the monitor omits a line while the engine writes. Null ends
    /// the serialization.
    void share_record(WriterLock* turns, Role role) {
        writer_lock_ = turns;
        role_ = role;
    }
    /// Called with each line of write_line(), without `t`, also without a file.
    using Listener = std::function<void(const char* type, const nlohmann::ordered_json& content)>;
    void set_listener(Listener listener) { listener_ = std::move(listener); }
    /// Adds `type` and `t` and writes the line. A full disk does not stop the run: the first failure is stored, and an
    /// incomplete line is removed, so that the record has complete lines only.
    void write_line(const char* type, const nlohmann::ordered_json& content);
    /// Removes an incomplete line that a killed process left at the end of the file, if the descriptor is readable.
    void remove_incomplete_line();
    /// Whether this writer has written no line.
    bool is_unused() const { return is_unused_; }
    /// Empty, or one sentence about the first line that could not be written.
    const std::string& first_error() const { return first_error_; }

 private:
    bool acquire_turn();
    void release_turn();
    void write_all(const std::string& text);
    void truncate_incomplete_line(std::size_t written) const;

    std::string path_;
    int descriptor_ = -1;
    std::int64_t epoch_ns_;
    std::string first_error_;
    Listener listener_;
    std::function<std::int64_t()> now_;
    WriterLock* writer_lock_ = nullptr;
    Role role_ = Role::engine;
    bool is_unused_ = true;
};

}  // namespace sonde::records
