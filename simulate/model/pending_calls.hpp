// SPDX-License-Identifier: Apache-2.0
// The calls that clients have made and the machine has not completed.
#pragma once

#include "model/client_table.hpp"
#include "model/file_table.hpp"
#include "model/monitoring_data.hpp"
#include "model/operation.hpp"
#include "model/timeline.hpp"

#include <cstdint>
#include <vector>

namespace sonde::simulate {

struct PendingCall {
    ModelOperation operation;
    Time cpu_time = 0;
    Time call_time = 0;
    std::uint64_t buffered_bytes = 0;      ///< of a buffered write, so far
    std::uint32_t pending_requests = 0;    ///< of a direct call
    bool has_paid_cache_lock = false;      ///< the time under the lock of the client's cache has passed
    int error = 0;                         ///< errno
    std::uint32_t full_target = no_index;  ///< the target with the maximum of dirty data: a write waits for it
};

class PendingCalls {
 public:
    PendingCalls(Timeline& timeline, const ClientTable& clients, const FileTable& files, MonitoringData& monitoring,
                 Listener& listener)
        : timeline_(timeline), clients_(clients), files_(files), monitoring_(monitoring), listener_(listener) {}

    PendingCall& operator[](std::uint32_t call) noexcept { return calls_[call]; }
    std::uint32_t add(const ModelOperation& operation, Time call_time, Time cpu_time);
    /// Counts the call and informs the listener. `call` may be used again for another one.
    void finish(std::uint32_t call, Time end);
    /// The same for a call that fails with an errno.
    void fail(std::uint32_t call, Time end, int error);

 private:
    std::uint64_t transferred_bytes(const ModelOperation& operation) const;

    Timeline& timeline_;
    const ClientTable& clients_;
    const FileTable& files_;
    MonitoringData& monitoring_;
    Listener& listener_;
    std::vector<PendingCall> calls_;
    std::vector<std::uint32_t> free_calls_;
};

}  // namespace sonde::simulate
