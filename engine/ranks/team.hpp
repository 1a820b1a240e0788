// SPDX-License-Identifier: Apache-2.0
// The processes of a run and how they synchronize: one process, processes forked by the engine, processes of one node
// started by a launcher, or MPI ranks on many nodes. The rest of the engine uses only this interface, without MPI.
//
// Vocabulary: a *process* is a rank. Each process runs the same number of task threads. *stream* = one thread of one
// process that takes part in barriers (usually a task; a duplex phase has two streams per task). The *leader* of a node
// is its lowest process; process 0 is the *root* and the only one that writes the record.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sonde::ranks {

struct ProcessLocation {
    int process = 0, processes = 1;        ///< global, as the launcher numbers them
    int local_index = 0, local_count = 1;  ///< on this node
    int node = 0, nodes = 1;               ///< nodes are numbered in the order of their lowest process
    std::vector<int> node_of;              ///< process -> node
    std::string host;
    bool is_root() const { return process == 0; }
    bool is_leader() const { return local_index == 0; }
};

/// One of the first errors of a node, in shared memory so that the root can report them together.
struct ErrorSlot {
    std::atomic<int> state{0};  ///< 0 free, 1 being written, 2 complete
    int task = -1;
    int code = 0;  ///< errno
    std::uint64_t offset = 0;
    std::int64_t at_ns = 0;   ///< since the start of the phase
    char operation[32] = {};  ///< "write", "open", …
    char path[1024] = {};
    char text[320] = {};  ///< verification: description of the mismatch
};

/// Shared by all processes of a node. Plain data: lives in shared memory.
struct NodeControl {
    static constexpr int max_errors = 16;
    static constexpr std::uint32_t quit_interrupt = 1, quit_error = 2, quit_peer_lost = 3, quit_time_limit = 4;
    std::atomic<std::uint32_t> stop{0};  ///< tasks leave their loops at the next operation when not 0 (quit_*)
    std::atomic<std::uint32_t> is_first_task_done{0};  ///< rule "first task to finish stops all"
    std::atomic<std::int64_t> phase_start_ns{0};       ///< common start of the timed part, in node clock ns
    std::atomic<std::uint64_t> wearout_target{0};      ///< operations every task must reach after the stonewall
    std::atomic<int> lost_process{-1};  ///< global number of a process that died or did not answer in time
    std::atomic<std::uint32_t> is_lost_by_timeout{0};  ///< 1: its node sent no message within the timeout
    std::atomic<std::uint32_t> error_count{0};         ///< all errors, including those without a slot
    ErrorSlot errors[max_errors];
};

class Team {
 public:
    Team() = default;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    virtual ~Team() = default;

    virtual const ProcessLocation& location() const = 0;
    /// "single", "forked", "node (hydra)", "mpi (MPICH 5.0.2, standard ABI)": for the record.
    virtual std::string description() const = 0;

    // --- called by the main thread of every process, in the same order everywhere ---

    /// Sends the root's text to every process.
    virtual std::string broadcast(std::string text) = 0;
    /// Returns true when `ok` is true in all processes.
    virtual bool all_true(bool ok) = 0;
    /// Returns the largest value of all processes.
    virtual std::uint64_t reduce_maximum(std::uint64_t own_value) = 0;
    /// Joins one text per node (from its leader; others pass anything) pairwise in a tree, in node order; the result is
    /// valid at the root, elsewhere empty. O(log nodes) steps.
    virtual std::string reduce_text(std::string own_text,
                                    const std::function<std::string(std::string, std::string)>& join) = 0;
    /// Zeroed memory of at least `bytes`, shared by the processes of this node, page aligned, kept until the team ends.
    /// The n-th call returns the same memory in every process of the node, so all must make their calls in equal order.
    virtual std::byte* allocate_shared(std::size_t bytes) = 0;
    /// Sets how many streams of each process take part in wait_for_all() from now on.
    virtual void set_streams_per_process(int streams_per_process) = 0;
    /// Only the first `processes` processes do I/O in the following runs: MPI-IO opens shared files with them.
    virtual void set_active_processes(int /*processes*/) {}
    /// Measures the offset between this node's clock and the root's again (see clock_offset_ns).
    virtual void align_clocks() = 0;

    // --- called by every stream ---

    /// Barrier over all streams of all processes (futex inside a node, MPI between leaders). Returns false when the
    /// team is broken: a peer died, so no process may wait.
    virtual bool wait_for_all(int stream) = 0;
    /// Barrier over the streams of this node only.
    virtual bool wait_for_node(int stream) = 0;

    // --- any time ---

    virtual NodeControl& control() = 0;
    /// Node clock + offset = root clock (CLOCK_MONOTONIC ns); 0 on the root's node.
    virtual std::int64_t clock_offset_ns() const = 0;
    /// Half-width of that offset's uncertainty in ns; 0 on the root's node.
    virtual std::int64_t clock_error_ns() const = 0;
    /// Opaque handle for the mpiio backend (mpi_interface.hpp); null without MPI.
    virtual const void* mpi_module() const { return nullptr; }
    /// Known progress of other nodes: bytes and operations of this phase, and the number of nodes that report.
    struct RemoteProgress {
        std::uint64_t bytes = 0, operations = 0;
        int nodes = 0;
    };
    virtual RemoteProgress remote_progress() const { return {}; }
    /// Messages that arrived at the ports of this run from outside of it (foreign), and copies of its own (repeated);
    /// at the root.
    struct RejectedMessages {
        std::uint64_t foreign = 0, repeated = 0;
    };
    virtual RejectedMessages rejected_messages() const { return {}; }
    /// Registers the counters of this node for remote_progress(): `*used` counters, `stride` bytes apart, each an
    /// std::atomic<std::uint64_t> of bytes and one of operations of this phase, in memory from allocate_shared().
    /// Called once by every process; without it, this node reports no progress.
    virtual void register_progress(const std::byte* /*first*/, std::size_t /*stride*/,
                                   const std::atomic<int>* /*used*/) {}
    /// Ends the team in good order (MPI_Finalize) and waits for all processes. Without it, the destructor assumes a
    /// failure: it marks this process as lost and does not wait. A process of a broken team must then end with _exit(),
    /// because MPI libraries may wait for dead processes when they are unloaded.
    virtual void finish() = 0;
};

}  // namespace sonde::ranks
