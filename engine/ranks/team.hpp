// SPDX-License-Identifier: Apache-2.0
// Who takes part in a run and how they meet. One process, processes forked by the engine, processes of one node
// started by a launcher, or MPI ranks on many nodes: the rest of the engine sees only a Team. MPI is not visible here.
//
// Vocabulary: a *process* is a rank. Each process runs the same number of task threads. *stream* = one thread of one
// process that meets at barriers (usually a task; a duplex phase has two streams a task). The *leader* of a node is its
// lowest process; process 0 is the *root* and the only one that writes the record.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sonde::ranks {

/// The launcher, the MPI library or a peer failed; what() is one sentence for the user. Exit code 3.
struct TeamError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One that every process finds out by itself in the same words: one of them says it.
struct CommonError : TeamError {
    using TeamError::TeamError;
};

struct Place {
    int process = 0, processes = 1;  ///< global, as the launcher numbers them
    int local = 0, locals = 1;       ///< on this node
    int node = 0, nodes = 1;         ///< nodes are numbered in the order of their lowest process
    std::vector<int> node_of;        ///< process -> node
    std::string host;
    bool root() const { return process == 0; }
    bool leader() const { return local == 0; }
};

/// The first errors of a node, kept in shared memory so that the root can speak once for all.
struct ErrorSlot {
    std::atomic<int> state{0};  ///< 0 free, 1 being written, 2 complete
    int task = -1;
    int code = 0;  ///< errno
    std::uint64_t offset = 0;
    std::int64_t at_ns = 0;  ///< since the start of the phase
    char what[32] = {};      ///< "write", "open", …
    char path[1024] = {};
    char text[320] = {};  ///< verification: what was found instead
};

/// Shared by all processes of a node. Plain data: lives in shared memory.
struct NodeControl {
    static constexpr int max_errors = 16;
    static constexpr std::uint32_t quit_interrupt = 1, quit_error = 2, quit_peer_lost = 3, quit_time_limit = 4;
    std::atomic<std::uint32_t> stop{0};           ///< tasks leave their loops at the next operation when not 0 (quit_*)
    std::atomic<std::uint32_t> first_done{0};     ///< rule "first task to finish stops all"
    std::atomic<std::int64_t> phase_start_ns{0};  ///< common start of the timed part, in node clock ns
    std::atomic<std::uint64_t> wearout_target{0};   ///< operations every task must reach after the stonewall
    std::atomic<int> lost_process{-1};              ///< global number of a process that died or was given up
    std::atomic<std::uint32_t> lost_in_silence{0};  ///< 1: its node was not heard of for too long
    std::atomic<std::uint32_t> error_count{0};      ///< all errors, also those that found no slot
    ErrorSlot errors[max_errors];
};

enum class Launch { automatic, single, forked, node, mpi };

struct FormRequest {
    Launch launch = Launch::automatic;
    int processes = 1;       ///< forked: how many
    std::string mpi_module;  ///< path of a module to load instead of the one beside the engine; empty = choose
    bool need_mpi = false;   ///< a backend needs MPI: load it even when one node would do
};

class Team {
 public:
    /// Finds out how this process was started and joins the others. Forked: returns in every child, while the parent
    /// never returns (it waits, and exits with the worst status of its children; see team.cpp).
    static std::unique_ptr<Team> form(const FormRequest& request);

    Team() = default;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    virtual ~Team() = default;

    virtual const Place& place() const = 0;
    /// "single", "forked", "node (hydra)", "mpi (MPICH 5.0.2, standard ABI)": for the record.
    virtual std::string description() const = 0;

    // --- called by the main thread of every process, in the same order everywhere ---

    /// The root's text reaches every process.
    virtual std::string broadcast(std::string text) = 0;
    /// True when all processes say ok.
    virtual bool all(bool ok) = 0;
    /// Largest value over all processes.
    virtual std::uint64_t maximum(std::uint64_t mine) = 0;
    /// Joins one text per node (from its leader; others pass anything) pairwise in a tree, in node order; the result is
    /// valid at the root, elsewhere empty. O(log nodes) steps.
    virtual std::string reduce(std::string mine, const std::function<std::string(std::string, std::string)>& join) = 0;
    /// Zeroed memory of at least `bytes`, shared by the processes of this node, page aligned, kept until the team ends.
    /// Returned memory is the same for equal call numbers in all local processes.
    virtual std::byte* shared(std::size_t bytes) = 0;
    /// How many streams of each process take part in meet() from now on.
    virtual void arrange(int streams_per_process) = 0;
    /// Only the first so many processes do the work of the runs to come: MPI-IO opens shared files with these.
    virtual void take_part(int /*processes*/) {}
    /// Measures the offset between this node's clock and the root's again (see clock_offset_ns).
    virtual void align_clocks() = 0;

    // --- called by every stream ---

    /// Barrier over all streams of all processes (futex inside a node, MPI between leaders). False when the team is
    /// broken: a peer died, so nobody must wait any more.
    virtual bool meet(int stream) = 0;
    /// The same for the streams of this node only.
    virtual bool meet_node(int stream) = 0;

    // --- any time ---

    virtual NodeControl& control() = 0;
    /// Node clock + offset = root clock (CLOCK_MONOTONIC ns); 0 on the root's node.
    virtual std::int64_t clock_offset_ns() const = 0;
    /// Half-width of that offset's uncertainty in ns; 0 on the root's node.
    virtual std::int64_t clock_error_ns() const = 0;
    /// Opaque handle for the mpiio backend (mpi_module.hpp); null without MPI.
    virtual const void* mpi() const { return nullptr; }
    /// Progress of other nodes as far as known: bytes and operations moved in this phase, and nodes heard of.
    struct Remote {
        std::uint64_t bytes = 0, operations = 0;
        int nodes = 0;
    };
    virtual Remote remote_progress() const { return {}; }
    /// Where other nodes find this node's part of remote_progress(): `*used` places, `stride` bytes apart, each
    /// beginning with an std::atomic<std::uint64_t> of bytes and one of operations moved in this phase. All in memory
    /// from shared(). Called once by every process; without it, this node counts as one that has moved nothing.
    virtual void count_progress(const std::byte* /*first*/, std::size_t /*stride*/, const std::atomic<int>* /*used*/) {}
    /// Ends the team in good order (MPI_Finalize); waits for all. Without it, the destructor assumes failure: it tells
    /// the others that this process is lost and waits for nobody. A process whose team is broken must end by _exit()
    /// after that: MPI libraries may wait for the dead when they are unloaded.
    virtual void finish() = 0;
};

/// Which launcher started this process ("hydra", "openmpi", "slurm", "pmix", "none") from its environment.
std::string detect_launcher();

}  // namespace sonde::ranks
