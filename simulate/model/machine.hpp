// SPDX-License-Identifier: Apache-2.0
// One mount of a described system as a discrete-event model. It does no I/O and reads no clock: a driver submits
// operations and says when the time has come. In virtual time it calls step() until all is done; in real time it calls
// advance() with the time that has passed and sleeps until next(). docs/concepts/simulate.md has every cost with its
// formula and source.
#pragma once

#include "model/fault.hpp"
#include "model/operation.hpp"
#include "model/traces.hpp"
#include "system/site.hpp"

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
    struct Options {
        std::uint64_t seed = 1;
        Time sample = 5'000'000'000;  ///< between two rows of counters; 0: none are kept
    };
    /// The listener outlives the machine. Throws SiteError.
    Machine(SiteModel site, const Options& options, Listener& listener);
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    const SiteModel& site() const;

    // --- files and streams ---

    /// The file of that name, laid out as the file system does when it is new. No cost: open and create have theirs.
    FileId file(std::string_view path);
    bool exists(std::string_view path) const;
    Layout layout(FileId file) const;
    /// Of an empty file. Throws SiteError when the file system has no such targets.
    void set_layout(FileId file, const Layout& layout);
    std::uint64_t size(FileId file) const;
    void resize(FileId file, std::uint64_t size);    ///< truncates or extends; no cost
    void allocate(FileId file, std::uint64_t size);  ///< blocks for so many bytes from the start; no cost
    void forget(std::string_view path);              ///< it was removed
    void rename(std::string_view from, std::string_view to);
    std::vector<std::string> names() const;  ///< of all files, in no order
    /// A stream of calls of a client (index in site().clients).
    StreamId stream(std::uint32_t client);
    void end_stream(StreamId stream);

    // --- time ---

    Time now() const;
    /// Hands over an operation that is called at `at` (>= now()). The listener hears when it is done.
    void submit(Time at, const Operation& operation);
    /// The end of an operation that touches nothing that others share (bytes into a piece of the cache that the stream
    /// has already reserved, or out of one that it has already fetched): nothing need be submitted then. Absent:
    /// submit.
    std::optional<Done> at_once(Time at, const Operation& operation);
    /// Calls the listener's woken() at `at`.
    void wake(Time at, std::uint64_t tag);
    Time next() const;  ///< of the next event; `never` when nothing is pending
    /// Handles one event. False when there is none.
    bool step();
    /// Handles all events up to `until`, and then it is that time.
    void advance(Time until);

    // --- treatments and faults ---

    /// Writes back what clients hold dirty, until that is done or it is `limit`.
    void flush(Time limit);
    void drop_caches(std::uint32_t client);
    void drop_server_caches();
    /// Bytes of a file that a client has in its page cache.
    std::uint64_t cached(std::uint32_t client, FileId file) const;
    /// Throws SiteError when there is no such part. A fault begins at its time or at once, in place of one of its kind
    /// at that part that has begun.
    void begin_fault(const Fault& fault);
    /// Ends all faults of that kind and part.
    void end_fault(const Fault& fault);
    /// Planned or under way, in the order in which they were told.
    const std::vector<Fault>& faults() const;

    // --- what is left ---

    const Traces& traces() const;
    /// The same but for the space that is left on targets, which costs a look at each file.
    const Traces& counters() const;
    /// Bytes that entered and left each part, for tests: what came in has gone out when nothing is pending.
    struct Flow {
        std::string part;
        std::uint64_t written = 0, read = 0;
        Time busy = 0;
    };
    std::vector<Flow> flows() const;
    std::uint64_t events() const;  ///< handled so far

 private:
    std::unique_ptr<Core> core_;
};

}  // namespace sonde::simulate
