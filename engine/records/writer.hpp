// SPDX-License-Identifier: Apache-2.0
// The record on disk: one JSON object a line, each written by one system call, so that a crash keeps whole lines.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::records {

/// In memory shared by two processes that write one record, the engine and its monitor: a line that is longer than a
/// pipe takes at once must not get one of the other's into its middle.
struct Turns {
    std::atomic<std::uint32_t> engine{0}, monitor{0};  ///< 1 = is writing a line
};

class Writer {
 public:
    enum class Role { engine, monitor };

    /// Appends to `path` (made if missing); "-" = standard output; empty = nowhere. Throws std::runtime_error with one
    /// sentence. `epoch_ns` = CLOCK_MONOTONIC at the start of the run: `t` counts from it.
    Writer(const std::string& path, std::int64_t epoch_ns);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    /// Moves time zero (a later stage continues the time of the first one).
    void set_epoch(std::int64_t epoch_ns) { epoch_ns_ = epoch_ns; }
    /// From now on `t` is what this clock says less the epoch, ns (a simulation has its own time).
    void keep_time(std::function<std::int64_t()> now) { now_ = std::move(now); }
    /// From now on lines are written by turns; a line of the monitor that finds the engine writing is left out. Null
    /// ends that: the other is gone.
    void take_turns(Turns* turns, Role role) {
        turns_ = turns;
        role_ = role;
    }
    /// Called with each line that line() is given, without `t`, also when there is no file.
    using Listener = std::function<void(const char* type, const nlohmann::ordered_json& content)>;
    void tell(Listener listener) { listener_ = std::move(listener); }
    /// Adds `type` and `t` and writes the line. A full disk does not stop the run: the first failure is kept, and a
    /// line that was cut off is taken back, so that the record holds whole lines only.
    void line(const char* type, const nlohmann::ordered_json& content);
    /// Takes back the piece of a line that a killed process left at the end of the file.
    void mend();
    /// Removes the record if this writer made it and has written nothing.
    void discard();
    /// Empty, or one sentence about the first line that could not be written.
    const std::string& trouble() const { return trouble_; }

 private:
    bool begin_turn();
    void end_turn();
    void write_whole(const std::string& text);
    void take_back(std::size_t written) const;

    std::string path_;
    int descriptor_ = -1;
    std::int64_t epoch_ns_;
    std::string trouble_;
    Listener listener_;
    std::function<std::int64_t()> now_;
    Turns* turns_ = nullptr;
    Role role_ = Role::engine;
    bool unused_ = false;  ///< made by this writer and empty
};

}  // namespace sonde::records
