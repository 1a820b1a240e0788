// SPDX-License-Identifier: Apache-2.0
// The clients of the machine and their streams of calls: state of their caches and of what they have in flight.
#pragma once

#include "kernel/stations.hpp"
#include "model/extent_cache.hpp"
#include "model/name_cache.hpp"
#include "model/operation.hpp"
#include "system/system_model.hpp"

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace sonde::simulate {

constexpr std::uint32_t no_index = ~0U;  ///< no index
constexpr std::uint64_t page_bytes = 4096;

/// A range of a file between two stripe and request borders for which a stream has reserved dirty room.
struct WritePiece {
    bool is_open = false;
    FileId file = 0;
    std::uint32_t target = 0;
    std::uint64_t file_from = 0, written_until = 0, reserved_until = 0;  ///< file offsets
    std::uint64_t object_offset = 0;
};

/// Limits the requests of one stream in one direction that are in flight. The others wait in a list.
struct InFlightLimit {
    std::uint32_t in_flight = 0;
    std::uint32_t first_waiting = no_index, last_waiting = no_index;
};

struct ClientStream {
    std::uint32_t client = 0;
    SingleServerStation cpu;
    WritePiece piece;
    FileId written_file = no_index;  ///< the file that counts the stream among its writers
    // Reading. All offsets are in `file`.
    FileId file = no_index;
    std::uint64_t last_read_end = 0;
    std::uint64_t requested_from = 0, requested_until = 0;                ///< fetched, or being fetched
    std::uint64_t ready_from = 0, ready_until = 0;                        ///< in the cache: reads cost only the copy
    std::uint64_t read_ahead_window = 0;                                  ///< bytes
    std::vector<std::pair<std::uint64_t, std::uint64_t>> missing_ranges;  ///< requested and in flight: from, until
    std::vector<std::uint32_t> waiting_reads;                             ///< calls
    InFlightLimit in_flight_limit[2];                                     ///< reads, writes
};

/// Requests of one client to one target.
struct TargetQueue {
    std::uint32_t in_flight = 0;
    std::uint64_t dirty_bytes = 0;
    std::deque<std::uint32_t> queued_requests;
};

struct Client {
    ClientDescription description;
    ExtentCache pages;
    NameCache names;
    SingleServerStation cache_lock;  ///< of its page cache (Lustre LU-744)
    SingleServerStation flusher;     ///< background writing, where its rate is limited
    double slowdown = 1;
    std::uint64_t dirty_bytes = 0;
    std::uint64_t read_ahead_in_flight = 0;     ///< bytes
    std::uint32_t write_back_count = 0;         ///< requests of write-behind in flight
    std::vector<TargetQueue> target_queues;     ///< by target; empty until the first request
    std::deque<std::uint32_t> waiting_writers;  ///< calls that wait for dirty room
    std::vector<StreamId> streams;
    std::uint32_t next_router = 0, next_forwarder = 0;

    TargetQueue& target_queue(std::uint32_t target, std::size_t target_count) {
        if (target_queues.empty()) {
            target_queues.resize(target_count);
        }
        return target_queues[target];
    }
};

class ClientTable {
 public:
    explicit ClientTable(const SystemModel& site);

    Client& operator[](std::size_t client) noexcept { return clients_[client]; }
    const Client& operator[](std::size_t client) const noexcept { return clients_[client]; }
    std::size_t size() const noexcept { return clients_.size(); }
    bool has_dirty_data() const;
    void remove_cached_file(FileId file);
    void remove_cached_name(FileId file);

    ClientStream& stream(StreamId id) noexcept { return streams_[id]; }
    const ClientStream& stream(StreamId id) const noexcept { return streams_[id]; }
    Client& client_of(StreamId id) noexcept { return clients_[streams_[id].client]; }
    std::size_t stream_count() const noexcept { return streams_.size(); }
    StreamId begin_stream(std::uint32_t client);
    /// The stream has no open piece and is no writer of a file.
    void end_stream(StreamId id);

 private:
    std::vector<Client> clients_;
    std::vector<ClientStream> streams_;
    std::vector<StreamId> free_streams_;
    bool caches_names_ = false;
};

}  // namespace sonde::simulate
