// SPDX-License-Identifier: Apache-2.0
// Data calls on their clients: direct calls, and the page cache with write-back (writing.cpp) and read-ahead
// (reading.cpp).
#pragma once

#include "model/client_table.hpp"
#include "model/file_table.hpp"
#include "model/monitoring_data.hpp"
#include "model/pending_calls.hpp"
#include "model/requests.hpp"
#include "model/timeline.hpp"
#include "system/system_model.hpp"

#include <cstdint>
#include <optional>

namespace sonde::simulate {

class ClientCache final : public RequestOwner {
 public:
    ClientCache(const SystemModel& site, ClientTable& clients, FileTable& files, Network& network,
                StorageServers& storage, PendingCalls& calls, Timeline& timeline, MonitoringData& monitoring);

    /// Processor time of a call on its client.
    Time call_cpu_time(const Client& client, const ModelOperation& operation) const;
    std::optional<CompletedOperation> complete_without_event(Time time, const ModelOperation& operation);
    // A call after its processor time.
    void begin_write(std::uint32_t call);
    void begin_read(std::uint32_t call);
    void begin_fsync(std::uint32_t call);
    /// Sends the stream's piece to its target and releases the unused room. It is no writer of a file any more.
    void close_file(StreamId stream);
    void write_back_piece(StreamId stream);
    void drop_pages(std::uint32_t client);
    /// Seconds of reading a page for each page of the file that the client caches.
    void set_cached_page_cost(double cost_s) { cached_page_cost_s_ = cost_s; }

    RequestPath& requests() { return requests_; }
    void on_request_done(const StorageRequest& request) override;

 private:
    void begin_uncached_call(std::uint32_t call);
    void register_writer(ClientStream& stream, FileId file);
    void unregister_writer(ClientStream& stream);
    bool reserve_piece(std::uint32_t call, FileId file, std::uint64_t offset);
    bool has_space_for_piece(const ModelOperation& operation, std::uint64_t offset);
    bool buffer_write(std::uint32_t call);
    void wait_for_dirty_room(std::uint32_t call);
    void finish_write_back(const StorageRequest& request);
    void finish_fsyncs(FileState& file, std::uint32_t client);

    void begin_buffered_read(std::uint32_t call);
    std::uint64_t plan_read_ahead(ClientStream& stream, const Client& client, const ModelOperation& operation,
                                  std::uint64_t until) const;
    void fetch_missing(StreamId id, std::uint64_t from, std::uint64_t until, std::uint64_t call_end);
    void finish_fetch(const StorageRequest& request);
    Time cache_lock_time(const Client& client, const ModelOperation& operation) const;

    const SystemModel& site_;
    ClientTable& clients_;
    FileTable& files_;
    PendingCalls& calls_;
    Timeline& timeline_;
    MonitoringData& monitoring_;
    RequestPath requests_;
    double cached_page_cost_s_ = 0;
};

}  // namespace sonde::simulate
