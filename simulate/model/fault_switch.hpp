// SPDX-License-Identifier: Apache-2.0
// The planned and active faults of a machine. fault_effects.cpp has what each of them changes.
#pragma once

#include "model/fault.hpp"
#include "model/machine_parts.hpp"

#include <cstdint>
#include <vector>

namespace sonde::simulate {

class FaultSwitch {
 public:
    explicit FaultSwitch(MachineParts& parts) : parts_(parts) {}

    /// Begins a fault at its time, or now. Throws SystemModelError when the machine has no such part.
    void begin(const Fault& fault);
    /// Ends all faults of that kind and part.
    void end(const Fault& fault);
    /// Begins a planned fault at its time, unless it was ended before.
    void begin_planned(std::uint32_t fault_index);
    /// Ends a fault at its time, unless it was ended or replaced before.
    void end_planned(std::uint32_t fault_index);
    /// Planned and active faults in the order of begin().
    const std::vector<Fault>& faults() const { return faults_; }

 private:
    void require_another_router(const Fault& fault) const;

    MachineParts& parts_;
    std::vector<Fault> faults_;
    std::vector<Fault> planned_faults_;  ///< with a later begin, by the subject of their event
    std::vector<Fault> ending_faults_;   ///< with an end, by the subject of its event
};

}  // namespace sonde::simulate
