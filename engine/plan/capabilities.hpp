// SPDX-License-Identifier: Apache-2.0
// Capabilities of backends and treatments, for the rules of a plan. The caller of parse_plan() passes them, because
// plan/ does not depend on backends or treatments.
#pragma once

#include "plan/plan.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sonde::plan {

/// Features of a backend.
struct BackendTraits {
    bool stores_data = true;    ///< false = data is discarded, so verification is impossible and reads need no writes
    bool needs_files = true;    ///< false = needs no directory and no free space
    bool queue = false;         ///< queue depth above one
    bool direct = false;        ///< O_DIRECT or the like
    bool sync = false;          ///< synchronous writes (O_SYNC, O_DSYNC)
    bool names = false;         ///< operations on trees (Channel::names)
    bool polling = false;       ///< polls instead of interrupts: io.sqpoll, io.iopoll
    bool collective = false;    ///< collective calls of all tasks
    bool mpi = false;           ///< needs MPI; supports hints
    bool views = false;         ///< MPI's file views
    bool virtual_time = false;  ///< may run on the channel's own clock (paced)
    unsigned dataset_element =
        0;                    ///< bytes of an element of the datasets that hold the data; 0 = plain bytes of a file
    bool rows = false;        ///< a dataset has a dimension of one transfer
    bool chunks = false;      ///< layout of datasets: chunks, alignment, collective metadata
    bool gpu_memory = false;  ///< moves data between storage and the memory of a GPU itself: needs io.gpus
    bool objects = false;     ///< whole objects in a bucket: the target is a URL, nothing is overwritten in part
    /// Whether the backend, with the libraries of this run, returns success for writes that failed. Null = it never
    /// does. Called only while a run that uses the backend is in progress.
    bool (*hides_write_errors)() = nullptr;
};

struct BackendCapability {
    std::string_view name;  ///< as in a plan
    BackendTraits traits;
};

struct TreatmentCapability {
    std::string_view name;  ///< as in a plan
    /// Returns a missing member and the reason ("time is missing: how long to sleep"), or an empty string. Null = no
    /// required members.
    std::string (*missing)(const Treatment& treatment) = nullptr;
};

/// All backends and treatments, in the order of help texts.
struct Capabilities {
    std::vector<BackendCapability> backends;
    std::vector<TreatmentCapability> treatments;

    /// Null for unknown names.
    const BackendCapability* backend(std::string_view name) const;
    const TreatmentCapability* treatment(std::string_view name) const;
    /// Traits of a backend; of an unknown one, traits that violate no rule.
    BackendTraits find_traits(std::string_view backend) const;
    /// "posix or io_uring": the backends on storage with a trait.
    std::string list_backends_with(bool BackendTraits::*trait) const;
};

}  // namespace sonde::plan
