// SPDX-License-Identifier: Apache-2.0
// What the rules of a plan must know of those who carry it out. Who reads a plan hands it in: plan/ knows none of them,
// and each says in its own file what it can do.
#pragma once

#include "plan/plan.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sonde::plan {

/// What a backend can do.
struct Traits {
    bool stores_data = true;    ///< false: nothing is kept, so verification is impossible and reads need no writes
    bool needs_files = true;    ///< false: no directory, no free space
    bool queue = false;         ///< queue depth above one
    bool direct = false;        ///< O_DIRECT or the like
    bool sync = false;          ///< each write can be durable when it returns (O_SYNC, O_DSYNC)
    bool names = false;         ///< operations on trees (Channel::names)
    bool collective = false;    ///< one call of all tasks moves the data of all
    bool mpi = false;           ///< needs MPI, and takes its hints and file views
    bool virtual_time = false;  ///< may run on the channel's own clock (paced)
};

struct BackendRule {
    std::string_view name;  ///< as in a plan
    Traits traits;
};

struct TreatmentRule {
    std::string_view name;  ///< as in a plan
    /// What a plan must say for it and does not: a member and why ("time is missing: how long to sleep"); empty when
    /// nothing is missing. Null: it needs nothing.
    std::string (*missing)(const Treatment& treatment) = nullptr;
};

/// All there is to name in a plan, in the order in which it is listed to people.
struct Offer {
    std::vector<BackendRule> backends;
    std::vector<TreatmentRule> treatments;

    /// Null when there is none of that name.
    const BackendRule* backend(std::string_view name) const;
    const TreatmentRule* treatment(std::string_view name) const;
    /// Of a backend; of one that there is not, those that refuse nothing here.
    Traits traits_of(std::string_view backend) const;
    /// "posix or io_uring": the backends on storage that have a trait.
    std::string backends_with(bool Traits::*trait) const;
};

}  // namespace sonde::plan
