// SPDX-License-Identifier: Apache-2.0
// The processes of one node: they share one arena and meet at futex gates. A whole team when there is one node; the
// lower half of the MPI team when there are more.
//
// A peer's death is noticed without any process id: each process holds a robust mutex for as long as it lives, and the
// kernel itself marks the mutex when its owner ends, however it ends and whoever may reuse its number.
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

/// One process in the shared head.
struct Peer {
    enum State : int { absent, present, left };
    pthread_mutex_t life;  ///< robust; held from join() to the end
    std::atomic<int> state{absent};
    std::atomic<int> process{-1};         ///< global number
    cpu_set_t cores;                      ///< that it may run on
    std::array<std::uint64_t, 2> said{};  ///< values of all() and maximum(), even and odd calls
};

/// The first piece of the arena. The peers follow it in memory.
struct NodeHead {
    static constexpr std::size_t board_bytes = 64U << 10U;
    static constexpr std::uint32_t here = 1, everywhere = 2;
    /// Where the wire finds the live counters of this node: places in the arena, of which the first `bytes` are needed.
    struct Counted {
        std::atomic<std::uint64_t> bytes{0}, first{0}, stride{0}, used{0};
    };
    Gate streams;                                                      ///< meet(), meet_node()
    Gate mains;                                                        ///< the collectives of the main threads
    std::atomic<std::uint64_t> board_length{0};                        ///< broadcast: bytes of the whole text
    std::atomic<std::uint64_t> verdict{0};                             ///< maximum over all nodes, from the leader
    std::atomic<std::int64_t> clock_offset{0}, clock_error{0};         ///< ns, see Team
    std::atomic<std::uint64_t> remote_bytes{0}, remote_operations{0};  ///< from the other nodes; at the root's node
    Counted counted;
    NodeControl control;
    /// Not 0: nobody waits any more. `everywhere`: the other nodes know it or are gone.
    std::atomic<std::uint32_t> broken{0};
    std::atomic<int> remote_nodes{0};
    int locals = 0;
    char board[board_bytes];

    static std::size_t bytes(int locals);
    std::span<Peer> peers();
    /// Makes a head in zeroed memory.
    static NodeHead* make(std::byte* memory, int locals);
    /// A head that another process made in this memory.
    static NodeHead* at(std::byte* memory);
    /// Records that a process of this node is gone and wakes all who wait. Harmless when repeated.
    void lose(int local);
    /// The same for a process of any node, by its global number (-1: unknown).
    void lose_process(int process, std::uint32_t extent);
    /// No peer has died (thorough: look at each; otherwise only at what others found).
    bool intact(bool thorough);
};

class NodeTeam : public Team, private Watch {
 public:
    /// `arena` holds a head as its first piece, already taken at `head`. Joins as `place.local`; the calling thread
    /// must be the one that lives as long as the process does. Throws TeamError when not all have joined after 30 s.
    NodeTeam(Arena arena, NodeHead* head, Place place, std::string description);
    ~NodeTeam() override;

    const Place& place() const override { return place_; }
    std::string description() const override { return description_; }
    std::string broadcast(std::string text) override;
    bool all(bool ok) override { return maximum(ok ? 0 : 1) == 0 && !broken(); }
    std::uint64_t maximum(std::uint64_t mine) override;
    std::string reduce(std::string mine, const std::function<std::string(std::string, std::string)>& join) override;
    std::byte* shared(std::size_t bytes) override { return arena_.take(bytes); }
    void arrange(int streams_per_process) override;
    void align_clocks() override {}
    bool meet(int stream) override { return meet_node(stream); }
    bool meet_node(int stream) override;
    NodeControl& control() override { return head_->control; }
    std::int64_t clock_offset_ns() const override { return head_->clock_offset.load(); }
    std::int64_t clock_error_ns() const override { return head_->clock_error.load(); }
    void finish() override;

 protected:
    bool broken() const { return head_->broken.load(std::memory_order_acquire) != 0; }
    NodeHead& head() { return *head_; }
    const NodeHead& head() const { return *head_; }
    std::uint32_t streams() const;  ///< of this node
    bool spin(std::uint32_t waiters) const { return waiters <= cores_; }
    /// Barrier over the main threads of the node.
    bool meet_mains();
    /// Says `mine` and, when all have spoken, returns the largest value of the node in every process.
    std::uint64_t node_maximum(std::uint64_t mine);
    Watch& watch() { return *this; }
    const Arena& arena() const { return arena_; }

    Place place_;
    std::string description_;

 private:
    bool intact(bool thorough) override { return head_->intact(thorough); }
    Peer& self() { return head_->peers()[static_cast<std::size_t>(place_.local)]; }

    Arena arena_;
    NodeHead* head_;
    std::atomic<std::uint32_t> streams_per_process_{1};
    std::uint32_t cores_ = 1;  // that the processes of this node may use together
    unsigned turn_ = 0;        // of said[]
    bool finished_ = false;
};

}  // namespace sonde::ranks
