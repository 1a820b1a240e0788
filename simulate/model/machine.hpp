// SPDX-License-Identifier: Apache-2.0
// One mount of a described system as a discrete-event model. It performs no I/O and reads no clock: a driver submits
// operations and advances the time. A driver in virtual time calls handle_next_event() until all operations are done; a
// driver in real time calls advance_to() with the time that has passed and sleeps until next_event_time().
// docs/concepts/simulate.md lists every cost with its formula and source.
#pragma once

#include "model/fault.hpp"
#include "model/machine_options.hpp"
#include "model/monitoring_data.hpp"
#include "model/operation.hpp"
#include "model/part_load.hpp"
#include "system/system_model.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::simulate {

class Core;

class Machine {
 public:
    /// The listener must outlive the machine. Throws SystemModelError.
    Machine(SystemModel site, const MachineOptions& options, Listener& listener);
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    const SystemModel& system() const;

    // --- files and streams; none of these takes simulated time ---

    /// The file of that name, created with the default layout if it does not exist.
    FileId get_file(std::string_view path);
    bool exists(std::string_view path) const;
    ModelLayout get_layout(FileId file) const;
    /// Sets the layout of an empty file. Throws SystemModelError when the file system has no such targets.
    void set_layout(FileId file, const ModelLayout& layout);
    std::uint64_t file_size(FileId file) const;
    void resize_file(FileId file, std::uint64_t size);      ///< truncates or extends
    void allocate_blocks(FileId file, std::uint64_t size);  ///< allocates blocks for the first `size` bytes
    void remove_file(std::string_view path);
    void rename_file(std::string_view from, std::string_view to);
    std::vector<std::string> file_names() const;  ///< unsorted
    /// Begins a stream of calls of a client (index in description().clients).
    StreamId begin_stream(std::uint32_t client);
    void end_stream(StreamId stream);

    // --- time ---

    Time now() const;
    /// Submits an operation that is called at `time` (>= now()). The listener gets its completion.
    void submit(Time time, const ModelOperation& operation);
    /// Completes an operation that touches nothing shared (bytes into a cache extent that the stream has reserved, or
    /// out of one that it has fetched) without an event. Empty: the operation must be submitted.
    std::optional<CompletedOperation> complete_without_event(Time time, const ModelOperation& operation);
    /// Calls the listener's on_alarm() at that time.
    void set_alarm(Time time, std::uint64_t tag);
    Time next_event_time() const;  ///< `never` when nothing is pending
    /// Handles one event. False when there is none.
    bool handle_next_event();
    /// Handles all events up to `time` and sets the clock to it.
    void advance_to(Time time);

    // --- treatments and faults ---

    /// Writes dirty data of all clients back, until all is stored or the clock has passed `limit`.
    void write_back_all(Time limit);
    void drop_client_caches(std::uint32_t client);
    void drop_server_caches();
    /// Bytes of a file in the page cache of a client.
    std::uint64_t cached_bytes(std::uint32_t client, FileId file) const;
    /// Throws SystemModelError when the site has no such part. The fault begins at its time, or now if that has passed.
    /// It replaces a fault of the same kind at the same part that has begun.
    void begin_fault(const Fault& fault);
    /// Ends all faults of that kind and part.
    void end_fault(const Fault& fault);
    /// Planned and active faults in the order of begin_fault().
    const std::vector<Fault>& faults() const;

    // --- results ---

    const MonitoringData& get_monitoring_data() const;
    /// The same without TargetCounters::free_bytes, which needs an iteration over all files.
    const MonitoringData& get_counters() const;
    /// Bytes that passed a part, for tests: the same for all parts in series when nothing is pending.
    struct Flow {
        std::string part;
        std::uint64_t written = 0, read = 0;
        Time busy = 0;
    };
    std::vector<Flow> flows() const;
    /// Busy time of each part that can be a bottleneck, in the same order at all times.
    std::vector<PartLoad> part_loads() const;
    std::uint64_t handled_event_count() const;

 private:
    std::unique_ptr<Core> core_;
};

}  // namespace sonde::simulate
