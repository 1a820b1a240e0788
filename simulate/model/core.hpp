// SPDX-License-Identifier: Apache-2.0
// State and events of the machine. core.cpp builds the machine and dispatches events; requests.cpp has the path of a
// request; writing.cpp and reading.cpp the client's cache; names.cpp the metadata servers; fault_effects.cpp the
// faults; background_load.cpp the load of other users.
#pragma once

#include "kernel/event_queue.hpp"
#include "model/extent_cache.hpp"
#include "model/fault.hpp"
#include "model/machine_options.hpp"
#include "model/operation.hpp"
#include "model/storage.hpp"
#include "model/traces.hpp"
#include "system/site.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sonde::simulate {

constexpr std::uint32_t none = ~0U;  ///< no index
constexpr std::uint64_t page_bytes = 4096;

/// The subject of an event is an index of the kind in its comment.
enum class EventKind : std::uint32_t {
    call_begins,       ///< call: the client has spent its processor time on it
    next_link,         ///< request: its first byte is at the next link
    at_server,         ///< request: its last byte is at the server
    at_media,          ///< request: the server passes it to the target
    media_done,        ///< request
    at_client,         ///< request: its data or its answer is at the client
    metadata_call,     ///< call: at the metadata server
    metadata_done,     ///< call: the answer is at the client
    alarm,             ///< alarm
    neighbor_request,  ///< target: a request of other users
    sample,            ///< none
    fault              ///< planned fault
};

enum class RequestPurpose : std::uint8_t { call, write_behind, read_ahead };

/// One request to one target.
struct StorageRequest {
    std::uint64_t file_offset = 0, object_offset = 0, length = 0;
    Time tail = 0;            ///< when its last byte is where its first byte is now
    Time server_arrival = 0;  ///< of its last byte
    std::uint32_t client = 0, target = 0, file = 0, stream = 0, forwarder = 0;
    std::uint32_t call = none;  ///< of RequestPurpose::call
    std::int32_t hops[6] = {-1, -1, -1, -1, -1, -1};
    std::uint8_t hop = 0, hop_count = 0;
    bool is_write = false, was_retried = false;
    bool extends_file = false;  ///< a write beyond the allocated blocks, which passes the log
    RequestPurpose purpose = RequestPurpose::call;
    std::uint32_t next_waiting = none;  ///< the next request in the list of InFlightLimit
};

struct PendingCall {
    ModelOperation operation;
    Time cpu_time = 0;
    Time call_time = 0;
    std::uint64_t buffered_bytes = 0;    ///< of a buffered write, so far
    std::uint32_t pending_requests = 0;  ///< of a direct call
    bool has_paid_cache_lock = false;    ///< the time under the lock of the client's cache has passed
    std::uint32_t full_target = none;    ///< the target with the maximum of dirty data: a write waits for it
};

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
    std::uint32_t first_waiting = none, last_waiting = none;
};

struct ClientStream {
    std::uint32_t client = 0;
    SingleServerStation cpu;
    WritePiece piece;
    FileId written_file = none;  ///< the file that counts the stream among its writers
    // Reading. All offsets are in `file`.
    FileId file = none;
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
    ClientSite site;
    ExtentCache pages;
    SingleServerStation cache_lock;  ///< of its page cache (Lustre LU-744)
    SingleServerStation flusher;     ///< background writing, where its rate is limited
    double slowdown = 1;
    std::uint64_t dirty_bytes = 0;
    std::uint32_t write_back_count = 0;         ///< requests of write-behind in flight
    std::vector<TargetQueue> target_queues;     ///< by target; empty until the first request
    std::deque<std::uint32_t> waiting_writers;  ///< calls that wait for dirty room
    std::vector<StreamId> streams;
    std::uint32_t router_turn = 0, forwarder_turn = 0;
};

struct FileState {
    ModelLayout layout;
    std::uint64_t size = 0;
    std::uint64_t allocated_bytes = 0;        ///< blocks from the start of the file, in bytes
    double drive_position = 0;                ///< 0 outer edge, 1 inner edge
    std::uint32_t fragments = 1;              ///< of 1 MiB
    std::uint32_t writer_count = 0;           ///< streams that wrote to the file and have it open
    bool is_cached_by_server = false;         ///< its metadata is in the memory of the metadata server
    std::vector<std::uint32_t> lock_holders;  ///< by lock unit: client + 1; 0: no holder
    std::unordered_map<std::uint32_t, std::uint32_t> pending_write_backs;  ///< client -> requests in flight
    std::vector<std::uint32_t> waiting_fsyncs;                             ///< calls
};

/// Where an offset of a file is stored.
struct StripeLocation {
    std::uint32_t target = 0;
    std::uint64_t object_offset = 0;
    std::uint64_t bytes_to_border = 0;  ///< until the end of the stripe or of the largest request
};

class Core {
 public:
    Core(SiteModel site, const MachineOptions& options, Listener& listener);

    // Events.
    void handle(const ScheduledEvent& event);
    void push(Time time, EventKind kind, std::uint32_t subject) {
        queue.push(time, static_cast<std::uint32_t>(kind), subject);
    }

    // Calls.
    void submit(Time time, const ModelOperation& operation);
    std::optional<CompletedOperation> complete_without_event(Time time, const ModelOperation& operation);
    Time call_cpu_time(const Client& client, const ModelOperation& operation) const;
    void begin_call(std::uint32_t call);
    void finish_call(std::uint32_t call, Time time);
    std::uint64_t transferred_bytes(const ModelOperation& operation) const;

    // The path of a request (requests.cpp).
    static bool extend_allocation(FileState& file, std::uint64_t end);
    StripeLocation locate_stripe(const FileState& file, std::uint64_t offset, std::uint64_t rpc_size) const;
    std::uint32_t create_request(const ClientStream& stream, StreamId id, const StripeLocation& location, FileId file,
                                 std::uint64_t offset, std::uint64_t length, bool is_write, RequestPurpose purpose);
    void enqueue_request(std::uint32_t request);
    void submit_to_target(std::uint32_t request);
    void release_stream_slot(const StorageRequest& finished);
    std::uint32_t choose_forwarder(Client& client) const;
    Time reserve_forwarder(std::uint32_t forwarder, Time arrival);
    void send_request(std::uint32_t request);
    void pass_next_link(std::uint32_t request);
    void receive_at_server(std::uint32_t request);
    void submit_to_media(std::uint32_t request);
    void complete_at_media(std::uint32_t request);
    void complete_request(std::uint32_t request);
    void choose_route(StorageRequest& request);
    Time acquire_locks(const StorageRequest& request, Time arrival);
    Time message_time(const StorageRequest& request) const;
    void count_request(const StorageRequest& request);

    // The client's cache (writing.cpp, reading.cpp).
    void begin_direct(std::uint32_t call);
    bool buffer_write(std::uint32_t call);
    void send_piece(StreamId stream);
    void wait_for_dirty_room(std::uint32_t call);
    void register_writer(ClientStream& stream, FileId file);
    void unregister_writer(ClientStream& stream);
    bool reserve_piece(std::uint32_t call, FileId file, std::uint64_t offset);
    void finish_write_back(const StorageRequest& request);
    void begin_fsync(std::uint32_t call);
    void begin_read(std::uint32_t call);
    void fetch_missing(StreamId id, std::uint64_t from, std::uint64_t until);
    void finish_fetch(const StorageRequest& request);
    bool is_missing(const ClientStream& stream, std::uint64_t from, std::uint64_t until) const;
    Time cache_lock_time(Client& client, const ModelOperation& operation);

    // Metadata servers (names.cpp).
    void send_metadata_call(std::uint32_t call);
    void serve_metadata_call(std::uint32_t call);
    Time metadata_cost(const Server& server, const ModelOperation& operation, FileState& file) const;
    Time metadata_delay(const ModelOperation& operation) const;
    Time metadata_message_time(const Client& client) const;
    FileId create_file();
    void place_on_drives(FileState& file);

    // Faults (fault_effects.cpp) and other users (background_load.cpp).
    void begin_fault(const Fault& fault);
    void begin_planned_fault(std::uint32_t index);
    void end_fault(const Fault& fault);
    void submit_neighbor_request(std::uint32_t target);
    void count_background_metadata();

    // Traces.
    void update_counters();
    void compute_free_space();
    void add_sample();
    void log(const std::string& host, const std::string& text);

    SiteModel site;
    MachineOptions options;
    Listener& listener;
    EventQueue queue;
    Time now = 0;
    std::uint64_t handled_event_count = 0;
    Random random;

    std::vector<Link> links;
    std::vector<Medium> media;
    std::vector<StorageTarget> targets;
    std::vector<Server> servers;
    std::vector<Client> clients;
    std::vector<ClientStream> streams;
    std::vector<StreamId> free_streams;
    std::vector<FileState> files;
    std::vector<FileId> free_files;
    std::unordered_map<std::string, FileId> files_by_name;
    std::vector<PendingCall> calls;
    std::vector<std::uint32_t> free_calls;
    std::vector<StorageRequest> requests;
    std::vector<std::uint32_t> free_requests;
    std::vector<std::uint64_t> alarm_tags;
    std::vector<std::uint32_t> free_alarms;
    std::vector<std::uint32_t> routers;          ///< links; each occurs as often as its weight
    std::vector<MultiServerStation> forwarders;  ///< their threads
    std::vector<Fault> faults;                   ///< planned or active
    std::vector<Fault> planned_faults;           ///< faults with a later begin, by the subject of their event
    Time background_counted_until = 0;           ///< calls of other users at metadata servers
    double cached_page_cost_s = 0;               ///< of the file system, or of an active fault
    std::uint64_t next_start_target = 0;         ///< of the layout of the next file
    std::uint64_t in_flight_count = 0;           ///< calls and requests; neighbors pause while it is 0
    double neighbor_share = 0;                   ///< fault: of the targets' rates
    double metadata_share = 0;                   ///< fault: of the metadata servers' time
    double full_share = -1;                      ///< fault: fill level; < 0: that of the site
    double first_route_weight = 1;               ///< fault: of the first of alternative routes
    Traces traces;
};

}  // namespace sonde::simulate
