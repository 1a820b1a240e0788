// SPDX-License-Identifier: Apache-2.0
// Metadata operations: a message to a metadata server, its threads, its journal, and the answer.
#pragma once

#include "model/client_table.hpp"
#include "model/file_table.hpp"
#include "model/monitoring_data.hpp"
#include "model/network.hpp"
#include "model/pending_calls.hpp"
#include "model/storage.hpp"
#include "model/timeline.hpp"
#include "system/system_model.hpp"

#include <cstdint>
#include <vector>

namespace sonde::simulate {

class MetadataServers {
 public:
    MetadataServers(const SystemModel& site, std::vector<Server>& servers, ClientTable& clients, FileTable& files,
                    Network& network, PendingCalls& calls, Timeline& timeline, MonitoringData& monitoring);

    /// Sends a call to its server.
    void send_call(std::uint32_t call);
    /// The call is at its server: plans its completion.
    void serve_call(std::uint32_t call);
    /// Other users occupy the servers for this share of their threads' time.
    void set_background_load(double share);
    /// Counts the calls of other users since the last count: as many getattr calls as occupy the threads for their
    /// share of the time.
    void count_background_calls();

 private:
    Time service_time(const Server& server, const ModelOperation& operation, const FileState& file) const;
    Time add_background_wait(Time service);
    Time content_transfer_time(const ModelOperation& operation) const;
    Time message_time(const Client& client) const;

    const SystemModel& site_;
    std::vector<Server>& servers_;
    ClientTable& clients_;
    FileTable& files_;
    Network& network_;
    PendingCalls& calls_;
    Timeline& timeline_;
    MonitoringData& monitoring_;
    double background_load_ = 0;
    Time background_counted_until_ = 0;
};

}  // namespace sonde::simulate
