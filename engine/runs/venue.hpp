// SPDX-License-Identifier: Apache-2.0
// A venue executes a plan: on threads and processes, or on fibers in virtual time.
#pragma once

#include "files/removal.hpp"
#include "phases/context.hpp"
#include "phases/phase_steps.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sonde::runs {

/// Members of the `run` line that depend on the venue.
struct RunDescription {
    std::string start_date;              ///< UTC, ISO 8601
    std::string clock_source;            ///< source of all times
    nlohmann::ordered_json run_members;  ///< further members that only this venue writes; an object
};

/// All processes of the team have one each; execute() calls the functions in this order.
class Venue {
 public:
    Venue() = default;
    virtual ~Venue() = default;
    Venue(const Venue&) = delete;
    Venue& operator=(const Venue&) = delete;

    /// The run that is executed: plan, options, team, and the state of the run.
    virtual phases::RunContext& context() = 0;
    /// Opens the record and prepares the run. Returns an exit code when the run does not begin.
    virtual std::optional<int> prepare() = 0;
    /// ns since time 0 of the record.
    virtual std::int64_t elapsed_ns() const = 0;
    /// At the root.
    virtual RunDescription describe_run() = 0;
    /// The `node` lines, in the order of nodes. Valid at the root; all processes call it.
    virtual std::vector<nlohmann::ordered_json> describe_nodes() = 0;
    /// Called after the head of the record was written. At the root.
    virtual void begin_phases() = 0;
    virtual std::unique_ptr<phases::PhaseSteps> begin_phase(std::size_t index) = 0;
    /// Removes the files of a run that ends with exit code `code`. All processes call it; with `is_team_lost` only
    /// those that are left. Returns what was removed, at the root; nothing where files are not counted.
    virtual std::optional<files::Removal> remove_files(int code, bool is_team_lost) = 0;
    /// Removes files after an exception, without the other processes. At the root.
    virtual void remove_files_after_exception() = 0;
    /// Called after the last line of the record. At the root.
    virtual void close() = 0;
};

}  // namespace sonde::runs
