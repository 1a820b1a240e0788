// SPDX-License-Identifier: Apache-2.0
// The parts of a machine, in the order in which they depend on each other.
#pragma once

#include "model/background_load.hpp"
#include "model/client_cache.hpp"
#include "model/client_table.hpp"
#include "model/file_table.hpp"
#include "model/machine_options.hpp"
#include "model/metadata_servers.hpp"
#include "model/monitoring_data.hpp"
#include "model/network.hpp"
#include "model/part_load.hpp"
#include "model/pending_calls.hpp"
#include "model/storage_servers.hpp"
#include "model/timeline.hpp"
#include "system/system_model.hpp"

#include <vector>

namespace sonde::simulate {

struct MachineParts {
    MachineParts(SystemModel described_site, const MachineOptions& options, Listener& listener);
    MachineParts(const MachineParts&) = delete;
    MachineParts& operator=(const MachineParts&) = delete;

    /// Updates the counters that events do not: calls of other users at metadata servers, and drives.
    void update_counters();
    void compute_free_space();
    /// Stores a row of the counters of all targets.
    void add_sample();

    /// Busy time of each part, in the same order at all times.
    std::vector<PartLoad> loads() const;

    const SystemModel system;
    MonitoringData monitoring;
    Timeline timeline;
    NoiseSeeds seeds;
    std::vector<Server> servers;
    Network network;
    ClientTable clients;
    FileTable files;
    StorageServers storage;
    PendingCalls calls;
    MetadataServers metadata;
    ClientCache cache;
    BackgroundLoad neighbors;
};

}  // namespace sonde::simulate
