// SPDX-License-Identifier: Apache-2.0
// The hints of a plan, in the form that the MPI module takes.
#pragma once

#include "plan/plan.hpp"
#include "ranks/mpi_interface.hpp"

#include <vector>

namespace sonde::backends {

/// Refers to the texts of `io`, which must live longer.
class MpiHints {
 public:
    explicit MpiHints(const plan::Io& io) {
        for (const auto& [name, value] : io.hints) {
            names_.push_back(name.c_str());
            values_.push_back(value.c_str());
        }
    }

    /// Sets the hints of a request, which must not live longer than this object.
    void add_to(SondeMpiFileRequest& request) const {
        request.hint_names = names_.data();
        request.hint_values = values_.data();
        request.hints = names_.size();
    }

 private:
    std::vector<const char*> names_, values_;
};

}  // namespace sonde::backends
