// SPDX-License-Identifier: Apache-2.0
// The machine inside: its state, and what happens at each event. core.cpp builds it and deals out events, requests.cpp
// moves requests along their way, writing.cpp and reading.cpp are the client's cache, names.cpp the metadata servers,
// trouble.cpp faults and other people's load.
#pragma once

#include "kernel/event_queue.hpp"
#include "model/machine.hpp"
#include "model/storage.hpp"

#include <deque>
#include <unordered_map>

namespace sonde::simulate {

constexpr std::uint32_t none = ~0U;
constexpr std::uint64_t page = 4096;

/// What an event is about; its subject is an index of the kind that is named.
enum class Happens : std::uint32_t {
    begin,       ///< call: the client has spent its time on it
    hop,         ///< request: its first byte is at the next link
    at_server,   ///< request: all of it is at the server
    at_media,    ///< request: the server hands it to the target
    media_done,  ///< request
    arrived,     ///< request: its data, or the answer, is at the client
    names,       ///< call: at the metadata server
    names_done,  ///< call
    wake,        ///< alarm
    neighbour,   ///< target: a request of others
    sample,
    fault
};

enum class For : std::uint8_t { call, write_behind, read_ahead };

/// One request to one target.
struct Request {
    std::uint64_t file_offset = 0, object_offset = 0, length = 0;
    Time sent = 0, tail = 0, at_server = 0;
    std::uint32_t client = 0, target = 0, file = 0, stream = 0, forwarder = 0;
    std::uint32_t call = none;  ///< For::call
    std::int32_t hops[6] = {-1, -1, -1, -1, -1, -1};
    std::uint8_t hop = 0, hop_count = 0;
    bool writing = false, tried_again = false;
    bool lengthens = false;  ///< a write past what the file had: its blocks are put down in the log
    For what = For::call;
    std::uint32_t after = none;  ///< the next one that waits at the same turnstile
};

struct PendingCall {
    Operation operation;
    Time cpu = 0;
    Time called = 0;
    std::uint64_t done = 0;      ///< buffered write: bytes taken so far
    std::uint32_t requests = 0;  ///< still under way
    bool issued = false;         ///< a read asked for what it lacks
    bool paid = false;           ///< the time under the lock of the client's cache
    std::uint32_t full = none;   ///< the target that has all that the client may hold dirty for it: what a write awaits
};

/// A piece of a file between two stripe and request borders that a stream has reserved room for.
struct Piece {
    bool open = false;
    FileId file = 0;
    std::uint32_t target = 0;
    std::uint64_t file_from = 0, file_at = 0, file_end = 0;  ///< written up to `file_at`
    std::uint64_t object_from = 0;
};

/// Requests of one stream in one direction, where a mount lets only so many be under way: the others wait in a list.
struct Turnstile {
    std::uint32_t under_way = 0;
    std::uint32_t first = none, last = none;  ///< requests that wait
};

struct Stream {
    std::uint32_t client = 0;
    bool ended = false;
    Fifo cpu;
    Piece piece;
    // Reading: what was fetched or asked for, and up to where it is surely there.
    FileId writes = none;  ///< the file that counts it among its writers
    FileId file = none;
    std::uint64_t next = 0;                      ///< end of the last read
    std::uint64_t ahead_from = 0, ahead_to = 0;  ///< asked for
    std::uint64_t ready_from = 0, ready_to = 0;  ///< copied at no more than its cost
    std::uint64_t window = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> missing;  ///< of these, still under way
    std::vector<std::uint32_t> waiting;                            ///< calls; several when they are made side by side
    Turnstile turnstile[2];                                        ///< reads, writes
};

/// What one client has under way to one target.
struct Channel {
    std::uint32_t in_flight = 0;
    std::uint64_t dirty = 0;
    std::deque<std::uint32_t> queued;  ///< requests
};

struct Client {
    ClientSite site;
    ExtentCache pages;
    Fifo cache_lock;  ///< of its page cache (LU-744)
    Fifo flusher;     ///< background writing, where its rate is limited
    double factor = 1;
    std::uint64_t dirty = 0;
    std::uint32_t flushing = 0;         ///< requests of write-behind under way
    std::vector<Channel> channels;      ///< by target
    std::deque<std::uint32_t> writers;  ///< calls that wait for room
    std::vector<StreamId> streams;
    std::uint32_t router_turn = 0, forwarder_turn = 0;
};

struct File {
    Layout layout;
    std::uint64_t size = 0;
    std::uint64_t allocated = 0;  ///< bytes from the start that requests have asked to write, or that were made before
    double position = 0;
    std::uint32_t pieces = 1;                                  ///< a request of 1 MiB lies in so many
    std::uint32_t writers = 0;                                 ///< streams that have it open and wrote
    bool known = false;                                        ///< its metadata is in the server's memory
    std::vector<std::uint32_t> lock_holders;                   ///< by lock unit: client + 1
    std::unordered_map<std::uint32_t, std::uint32_t> pending;  ///< client -> requests of write-behind under way
    std::vector<std::uint32_t> syncing;                        ///< calls that wait until these are done
};

class Core {
 public:
    Core(SiteModel site, const Machine::Options& options, Listener& listener);

    // Events.
    void handle(const Event& event);
    void push(Time at, Happens kind, std::uint32_t subject) {
        queue.push(at, static_cast<std::uint32_t>(kind), subject);
    }

    // Calls.
    void submit(Time at, const Operation& operation);
    std::optional<Done> at_once(Time at, const Operation& operation);
    Time cost_of(const Client& client, const Operation& operation) const;
    void begin(std::uint32_t call);
    void finish(std::uint32_t call, Time at);
    std::uint64_t moved_by(const Operation& operation) const;

    // The way of a request (requests.cpp).
    struct Where {
        std::uint32_t target = 0;
        std::uint64_t object_offset = 0, to_border = 0;  ///< bytes to the end of the stripe or of the largest request
    };
    static bool lengthens(File& file, std::uint64_t end);
    Where place_of(const File& file, std::uint64_t offset, std::uint64_t rpc_size) const;
    std::uint32_t make_request(const Stream& stream, StreamId id, const Where& where, FileId file, std::uint64_t offset,
                               std::uint64_t length, bool writing, For what);
    void enqueue(std::uint32_t request);
    void to_target(std::uint32_t request);
    void let_next_in(const Request& gone);
    std::uint32_t next_forwarder(Client& client) const;
    Time forwarded(std::uint32_t forwarder, Time at);
    void send(std::uint32_t request);
    void next_hop(std::uint32_t request);
    void at_server(std::uint32_t request);
    void at_media(std::uint32_t request);
    void media_done(std::uint32_t request);
    void arrived(std::uint32_t request);
    void give_way(Request& request);
    Time locks(const Request& request, Time now);
    Time message_time(const Request& request) const;
    void count(const Request& request);

    // The client's cache (writing.cpp, reading.cpp).
    void begin_direct(std::uint32_t call);
    bool continue_write(std::uint32_t call);
    void seal(StreamId stream);
    void wait_for_room(std::uint32_t call);
    void count_writer(Stream& stream, FileId file);
    void end_writing(Stream& stream);
    bool open_piece(std::uint32_t call, FileId file, std::uint64_t offset);
    void written_back(const Request& request);
    void begin_fsync(std::uint32_t call);
    void begin_read(std::uint32_t call);
    void fetch(StreamId id, std::uint64_t from, std::uint64_t to);
    void fetched(const Request& request);
    bool waits_for(const Stream& stream, std::uint64_t from, std::uint64_t to) const;
    Time under_cache_lock(Client& client, const Operation& operation);

    // Names (names.cpp).
    void begin_names(std::uint32_t call);
    void at_names(std::uint32_t call);
    Time cost_of_names(const Server& server, const Operation& operation, File& file) const;
    Time delay_of_names(const Operation& operation) const;
    Time way_to_names(const Client& client) const;
    FileId make_file();

    // Trouble (trouble.cpp).
    void begin_fault(const Fault& fault);
    void begin_planned(std::uint32_t index);
    void end_fault(const Fault& fault);
    void apply(const Fault& fault, bool on);
    void neighbour(std::uint32_t target);
    void count_others();
    void bring_counters_up_to_date();
    void count_space();
    void sample();
    void say(const std::string& host, const std::string& text);
    void lay_out_anew(File& file);

    SiteModel site;
    Machine::Options options;
    Listener& listener;
    EventQueue queue;
    Time now = 0;
    std::uint64_t handled = 0;
    Random chance;

    std::vector<Link> links;
    std::vector<Medium> media;
    std::vector<Target> targets;
    std::vector<Server> servers;
    std::vector<Client> clients;
    std::vector<Stream> streams;
    std::vector<StreamId> free_streams;
    std::vector<File> files;
    std::vector<FileId> free_files;
    std::unordered_map<std::string, FileId> names;
    std::vector<PendingCall> calls;
    std::vector<std::uint32_t> free_calls;
    std::vector<Request> requests;
    std::vector<std::uint32_t> free_requests;
    std::vector<std::uint64_t> alarms;
    std::vector<std::uint32_t> free_alarms;
    std::vector<std::uint32_t> routers;  ///< links, each as often as its weight says
    std::vector<Slots> forwarders;       ///< their threads
    std::vector<Fault> faults;           ///< planned or under way
    std::vector<Fault> planned;          ///< those that begin later, by the subject of their event
    Time others_counted = 0;             ///< up to when the calls of others at metadata servers are counted
    double cached_page_cost_s = 0;       ///< of the file system, or of a fault of the clients
    std::uint64_t next_start = 0;        ///< of the layout of the next file
    std::uint64_t under_way = 0;         ///< calls and requests: while there are any, others make load too
    double neighbour_share = 0, names_share = 0;
    double full_share = -1;  ///< fault: fill level
    double way_weight = 1;   ///< fault: of the first of alternative ways
    Traces traces;
};

}  // namespace sonde::simulate
