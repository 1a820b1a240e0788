// SPDX-License-Identifier: Apache-2.0
// Passes calls and events of a machine to its parts.
#pragma once

#include "model/fault_switch.hpp"
#include "model/machine_options.hpp"
#include "model/machine_parts.hpp"

#include <cstdint>
#include <vector>

namespace sonde::simulate {

class Core {
 public:
    Core(SystemModel site, const MachineOptions& options, Listener& listener);

    void submit(Time time, const ModelOperation& operation);
    void set_alarm(Time time, std::uint64_t tag);
    /// Handles the earliest event. There must be one.
    void handle_next_event();

    MachineParts parts;
    FaultSwitch faults;

 private:
    void handle_request_event(EventKind kind, std::uint32_t request);
    void begin_call(std::uint32_t call);

    Time sample_interval_;
    Listener& listener_;
    std::vector<std::uint64_t> alarm_tags_;
    std::vector<std::uint32_t> free_alarms_;
};

}  // namespace sonde::simulate
