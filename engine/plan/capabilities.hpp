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
    bool stores_data = true;      ///< false = data is discarded, so verification is impossible and reads need no writes
    bool needs_files = true;      ///< false = needs no directory and no free space
    bool supports_queue = false;  ///< queue depth above one
    bool supports_direct = false;        ///< O_DIRECT or the like
    bool supports_sync = false;          ///< synchronous writes (O_SYNC, O_DSYNC)
    bool supports_trees = false;         ///< operations on trees (Channel::names)
    bool supports_polling = false;       ///< polls instead of interrupts: io.sqpoll, io.iopoll
    bool supports_collective = false;    ///< collective calls of all tasks
    bool needs_mpi = false;              ///< needs MPI; supports hints
    bool supports_views = false;         ///< MPI's file views
    bool supports_virtual_time = false;  ///< may run on the channel's own clock (paced)
    unsigned dataset_element_bytes =
        0;  ///< bytes of an element of the datasets that hold the data; 0 = plain bytes of a file
    bool has_transfer_dimension = false;  ///< a dataset has a dimension of one transfer
    bool supports_chunks = false;         ///< layout of datasets: chunks, alignment, collective metadata
    bool transfers_gpu_memory = false;    ///< moves data between storage and the memory of a GPU itself: needs io.gpus
    bool stores_objects = false;  ///< whole objects in a bucket: the target is a URL, nothing is overwritten in part
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
    std::string (*explain_missing_member)(const Treatment& treatment) = nullptr;
};

/// All backends and treatments, in the order of help texts.
struct Capabilities {
    std::vector<BackendCapability> backends;
    std::vector<TreatmentCapability> treatments;

    /// Null for unknown names.
    const BackendCapability* find_backend(std::string_view name) const;
    const TreatmentCapability* find_treatment(std::string_view name) const;
    /// Traits of a backend; of an unknown one, traits that violate no rule.
    BackendTraits find_traits(std::string_view find_backend) const;
    /// "posix or io_uring": the backends on storage with a trait.
    std::string list_backends_with(bool BackendTraits::*trait) const;
};

}  // namespace sonde::plan
