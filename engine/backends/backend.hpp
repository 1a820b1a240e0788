// SPDX-License-Identifier: Apache-2.0
// The seam through which bytes reach storage. A backend is one file with one `Backend` value, listed in list.cpp.
// Backends know nothing of workloads, phases or meters.
#pragma once

#include "backends/names.hpp"
#include "backends/syscall_file.hpp"
#include "plan/capabilities.hpp"
#include "plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::backends {

/// Whether a backend can run on this machine.
struct Availability {
    bool is_available = true;
    std::string reason;  ///< if not: one sentence that names the cause and the remedy
};

/// One call to storage. `buffer` is valid until the operation has completed.
struct IoRequest {
    std::uint64_t offset = 0;  ///< bytes from the start of the file
    std::byte* buffer = nullptr;
    std::uint32_t length = 0;      ///< bytes
    std::uint16_t file_index = 0;  ///< index given to open()
    bool is_write = false;
    std::uint8_t reserved = 0;
    std::uint32_t slot = 0;  ///< queue slot, 0 .. queue_depth-1; names the buffer area too
};

struct Completion {
    std::uint32_t slot = 0;
    std::int64_t result = 0;  ///< bytes moved, or -errno
};

/// Location of one task's data in a file: blocks of `length` bytes, one every `stride` bytes, the first at `first`.
struct BlockPattern {
    std::uint64_t first = 0, length = 0, stride = 0;
};

struct OpenRequest {
    std::string path;
    bool write = false;
    bool read = true;
    bool create = false;
    bool truncate = false;
    bool exclusive = false;
    bool no_follow = false;               ///< fails with ELOOP where `path` is a symbolic link; mpiio cannot
    Directory root = current_directory;   ///< an open directory that holds the file; mpiio opens by the whole path
    std::size_t relative_path_begin = 0;  ///< where the path below `root` begins in `path`; beyond its end: ENOENT
    std::uint64_t device = 0;             ///< number (st_rdev) of the block device that `path` must be; 0 = a file
    std::uint64_t size = 0;               ///< bytes the file will hold in the end: preallocation, mmap
    BlockPattern blocks;                  ///< io.view only
};

/// Copies between host buffers and GPU memory that operations need in addition to the transfer itself (io.gpus).
struct GpuCopies {
    bool before_writes = false;  ///< the processor makes the content of each write anew
    bool after_reads = false;    ///< what was read is compared in the host's memory
};

/// Settings of a channel that hold before it opens its first file.
struct ChannelSetup {
    const plan::Io* io = nullptr;
    const plan::Paced* paced = nullptr;
    const plan::TargetSettings* target = nullptr;
    int task = 0;  ///< global number of the task
    int tasks = 1;
    unsigned file_count = 1;       ///< how many files will be open at once at most
    std::uint32_t max_length = 0;  ///< of one operation, bytes
    /// Buffer areas, one per queue slot; a backend may register them. Operations stay inside the area of their slot.
    std::span<const std::span<std::byte>> buffer_areas;
    GpuCopies gpu_copies;
    /// mpiio: opaque handle of the MPI module (ranks/mpi_interface.hpp); null elsewhere.
    const void* mpi = nullptr;
    bool shared_file = false;  ///< all tasks open the same path (collective open)
};

/// One task's access to storage. Used by one thread only. No call allocates, locks or prints between open and close.
class Channel {
 public:
    Channel() = default;
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    virtual ~Channel() = default;

    /// Opens a file in slot `file` (0 .. setup.file_count-1) and preallocates it when asked. 0 or -errno.
    virtual int open(std::uint16_t file, const OpenRequest& request) = 0;
    /// Makes written data durable. 0 or -errno.
    virtual int fsync(std::uint16_t file) = 0;
    /// Closes and reports errors of delayed writes. 0 or -errno.
    virtual int close(std::uint16_t file) = 0;

    /// Performs one operation and waits for it: bytes moved (may be fewer than asked; 0 = end of file) or -errno.
    virtual std::int64_t transfer(const IoRequest& operation) noexcept = 0;
    /// The open file `file`, when transfer() is one call on it and nothing else; else none. Until it is closed.
    virtual SyscallFile syscall_file(std::uint16_t /*file*/) const noexcept { return {}; }

    /// Queue depth above one (BackendTraits::supports_queue): hand over an operation; false when the queue is full.
    virtual bool submit(const IoRequest& /*operation*/) noexcept { return false; }
    /// Waits for at least one completion and returns all that are there (at most done.size()). 0 = nothing in flight.
    virtual std::size_t reap(std::span<Completion> /*done*/) noexcept { return 0; }

    /// Operations on whole files; `path` is relative to `root`. The defaults are fstatat(2) and unlinkat(2). 0 or
    /// -errno.
    virtual int stat(Directory root, const char* path) noexcept;
    virtual int remove(Directory root, const char* path) noexcept;

    /// BackendTraits::supports_trees: operations on trees; null otherwise. Made by the first call, owned by the
    /// channel.
    virtual NameOperations* name_operations() { return nullptr; }

    /// Collective access: true when any task wants to stop. Called by all tasks after every operation.
    virtual bool agree_on_stop(bool stop) noexcept { return stop; }

    /// BackendTraits::supports_virtual_time: nanoseconds since begin_timed_part(). Other backends are timed by the
    /// machine's clock.
    virtual std::int64_t virtual_time_ns() const noexcept { return 0; }
    /// Start of the timed part: schedules count from here.
    virtual void begin_timed_part() noexcept {}
    /// BackendTraits::supports_virtual_time: advances its clock by `ns` without an operation. False: it has no clock,
    /// so the caller sleeps.
    virtual bool advance_virtual_time(std::int64_t /*ns*/) noexcept { return false; }

    /// Requested features that are missing but did not prevent the work, one sentence each ("without registered
    /// buffers: …"). All affected tasks use the same text, so that tasks can be counted.
    virtual std::vector<std::string> missing_features() const { return {}; }
    /// Requests that were sent again so far. Their time is in the latency of their operation.
    virtual std::uint64_t retries() const noexcept { return 0; }
    /// Details of the last error beyond its errno, for example a server's message; empty if there are none.
    virtual const char* last_error_text() const noexcept { return ""; }
};

/// Features of a backend, which the checks of a plan use (plan/capabilities.hpp).
using plan::BackendTraits;

struct Backend {
    std::string_view name;
    std::string_view summary;  ///< one line for `backends`
    BackendTraits traits;
    /// Checks whether the backend can run on this machine. An empty `directory` checks only the build and the kernel.
    Availability (*check_availability)(const std::string& directory);
    /// Makes one channel; throws std::runtime_error with one sentence when it cannot.
    std::function<std::unique_ptr<Channel>(const ChannelSetup& setup)> make_channel;
};

/// All backends that were compiled in, in the order they are listed to people.
std::span<const Backend* const> list_backends();
/// The backend of that name, or null.
const Backend* find_backend(std::string_view name);

}  // namespace sonde::backends
