// SPDX-License-Identifier: Apache-2.0
// The processes of one node: they share one arena and synchronize with futex barriers. On one node this is the complete
// team; on several nodes it is the base of the MPI team.
//
// The death of a peer is detected without process ids: each process holds a robust mutex while it lives, and the kernel
// marks the mutex when its owner ends.
#pragma once

#include "ranks/arena.hpp"
#include "ranks/barrier.hpp"
#include "ranks/team.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/types.h>
#include <array>
#include <span>

namespace sonde::ranks {

/// One process in the shared state of a node.
struct Peer {
    enum PeerState : int { absent, present, left };
    pthread_mutex_t alive_lock;  ///< robust; locked from the constructor of NodeTeam to its destructor
    std::atomic<int> state{absent};
    std::atomic<int> process{-1};                  ///< global number
    cpu_set_t cores;                               ///< on which the process may run
    std::array<std::uint64_t, 2> contributions{};  ///< values of all_true() and reduce_maximum(), even and odd calls
};

/// The first piece of the arena. The array of peers follows it in memory.
struct NodeSharedState {
    static constexpr std::size_t broadcast_buffer_bytes = 64U << 10U;
    static constexpr std::uint32_t this_node_only = 1, all_nodes = 2;
    /// Offsets in the arena of the live counters of this node, for the wire process, which maps the first `bytes`
    /// bytes.
    struct ProgressCounters {
        std::atomic<std::uint64_t> bytes{0}, first_offset{0}, offset_stride{0}, count_offset{0};
    };
    NodeBarrier stream_barrier;                                       ///< wait_for_all(), wait_for_node()
    NodeBarrier main_barrier;                                         ///< the collectives of the main threads
    std::atomic<std::uint64_t> broadcast_length{0};                   ///< broadcast: bytes of the whole text
    std::atomic<std::uint64_t> global_maximum{0};                     ///< maximum over all nodes, from the leader
    std::atomic<std::int64_t> clock_offset_ns{0}, clock_error_ns{0};  ///< ns, see Team
    std::atomic<std::uint64_t> remote_bytes{0},
        remote_operations{0};  ///< from the other nodes; only on the root's node
    std::atomic<std::uint64_t> foreign_datagrams{0},
        repeated_datagrams{0};  ///< RejectedDatagrams of all nodes; only on the root's node
    ProgressCounters progress_counters;
    NodeControl control;
    /// Not 0: all waits end. `all_nodes`: the other nodes know it or are gone.
    std::atomic<std::uint32_t> broken_extent{0};
    std::atomic<int> remote_nodes{0};
    int local_count = 0;
    char broadcast_buffer[broadcast_buffer_bytes];

    static std::size_t required_bytes(int local_count);
    std::span<Peer> peers();
    /// Constructs the state in zeroed memory.
    static NodeSharedState* construct_in(std::byte* memory, int local_count);
    /// The state that another process constructed in this memory.
    static NodeSharedState* attach(std::byte* memory);
    /// Records that a process of this node is gone and wakes all waiters. May be repeated.
    void mark_lost(int local_index);
    /// The same for a process of any node, by its global number (-1: unknown).
    void mark_process_lost(int process, std::uint32_t extent);
    /// Whether no peer has died. `thorough` checks each peer; otherwise only the result of earlier checks counts.
    bool is_intact(bool thorough);
};

class NodeTeam : public Team, private LivenessCheck {
 public:
    /// `head` is the first piece of `arena`. Joins as `location.local_index`. The calling thread must live as long as
    /// the process. Throws TeamError when not all have joined after 30 s.
    NodeTeam(Arena arena, NodeSharedState* head, ProcessLocation location, std::string description);
    ~NodeTeam() override;

    const ProcessLocation& location() const override { return location_; }
    std::string description() const override { return description_; }
    std::string broadcast(std::string text) override;
    bool all_true(bool ok) override { return reduce_maximum(ok ? 0 : 1) == 0 && !is_broken(); }
    std::uint64_t reduce_maximum(std::uint64_t own_value) override;
    std::string reduce_text(std::string own_text,
                            const std::function<std::string(std::string, std::string)>& join) override;
    std::byte* allocate_shared(std::size_t bytes) override { return arena_.allocate(bytes); }
    void set_streams_per_process(int streams_per_process) override;
    void align_clocks() override {}
    bool wait_for_all(int stream) override { return wait_for_node(stream); }
    bool wait_for_node(int stream) override;
    NodeControl& control() override { return head_->control; }
    std::int64_t clock_offset_ns() const override { return head_->clock_offset_ns.load(); }
    std::int64_t clock_error_ns() const override { return head_->clock_error_ns.load(); }
    void finish() override;

 protected:
    bool is_broken() const { return head_->broken_extent.load(std::memory_order_acquire) != 0; }
    NodeSharedState& head() { return *head_; }
    const NodeSharedState& head() const { return *head_; }
    std::uint32_t count_streams() const;  ///< of this node
    bool should_spin(std::uint32_t waiters) const { return waiters <= core_count_; }
    /// Barrier over the main threads of the node.
    bool wait_for_main_threads();
    /// Returns the largest `own_value` of the node in every process.
    std::uint64_t node_maximum(std::uint64_t own_value);
    LivenessCheck& liveness_check() { return *this; }
    const Arena& arena() const { return arena_; }

    ProcessLocation location_;
    std::string description_;

 private:
    bool is_intact(bool thorough) override { return head_->is_intact(thorough); }
    Peer& find_own_peer() { return head_->peers()[static_cast<std::size_t>(location_.local_index)]; }

    Arena arena_;
    NodeSharedState* head_;
    std::atomic<std::uint32_t> streams_per_process_{1};
    std::uint32_t core_count_ = 1;    // union of the cores of all processes of this node
    unsigned contribution_slot_ = 0;  // index into votes[]
    bool finished_ = false;
};

}  // namespace sonde::ranks
