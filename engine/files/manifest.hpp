// SPDX-License-Identifier: Apache-2.0
// The manifest: a file in the run directory that says what the run makes there, written before anything is made. With
// it a later phase in another process knows the data, and `clean` removes what a killed run left, and nothing else.
#pragma once

#include "files/confined_directory.hpp"
#include "files/dataset.hpp"
#include "files/task_map.hpp"
#include "files/trees.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sonde::files {

/// The manifest could not be written because the file system, a quota or a size limit is full. what() is one sentence.
struct NoSpaceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A manifest was found that does not count, because another user could have written it. what() is one sentence that
/// names the file, its owner and what to do.
struct UntrustedManifestError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

constexpr const char* manifest_name = ".sonde-manifest.json";
/// The manifest while it is being written; renamed when it is complete.
constexpr const char* manifest_draft_name = ".sonde-manifest.json.new";

/// The owners whose manifests count. All manifests must be regular files.
enum class Trust {
    anybody,  ///< every manifest: to see which run uses a directory. Nothing may be removed by such a manifest.
    /// Owned by the caller or root, written by nobody else: to continue a run of the caller. Where a server maps users
    /// (root_squash), the owner of the caller's new files counts as the caller.
    caller,
    /// Owned by the caller or root, written by nobody else, with one name, in a directory where other users cannot
    /// replace it (ConfinedDirectory::explain_unsafe_directory): to remove what it lists.
    removal,
};

/// Whether a run is still active, as far as this host can determine.
enum class WriterState { alive, ended, elsewhere };

struct Manifest {
    std::string run_id;
    std::string host, boot_id;         ///< where the root process runs or ran; boot = kernel boot id
    std::string pid_namespace_number;  ///< number of its pid namespace: in another one, `pid` says nothing
    int pid = 0;
    std::uint64_t process_start = 0;  ///< clock ticks since boot: tells a living process from a reused pid
    plan::Files files;
    TaskMap tasks;
    std::uint64_t payload_period = 0;  ///< of the payload base
    std::int64_t epoch_ns = 0;  ///< CLOCK_MONOTONIC when the run began: time zero of the record, also in later stages
    /// Rates of the last phases that only wrote and that only read, bytes/s; 0 = none. A duplex phase in a later
    /// process is held against them.
    double last_write_rate = 0, last_read_rate = 0;
    bool directory_existed_before =
        false;  ///< the directory was there before (target.use_existing): nothing in it is ours
    Dataset data;
    bool has_data = true;  ///< false: the plan has no data files
    Forest trees;

    /// The text that parse() reads.
    std::string to_text() const;
    /// Writes `.sonde-manifest.json` in `directory` atomically and durably. Throws NoSpaceError or another
    /// std::runtime_error with one sentence; then the one before it still stands.
    void save(const ConfinedDirectory& directory) const;
    /// Empty when there is none. Throws UntrustedManifestError when there is one that does not count, and another
    /// std::runtime_error when there is one that cannot be read or that no run can have written.
    static std::optional<Manifest> load(const ConfinedDirectory& directory, Trust trust);
    /// The manifest in `text`. Throws std::exception when no run can have written it.
    static Manifest parse(const std::string& text);
    /// Returns the state of the process that wrote the manifest. `elsewhere`: the process is on another host or in
    /// another container, so its state is unknown.
    WriterState check_writer_liveness() const;
    void stamp_this_process();
    /// Removes the manifest of a directory whose files stay.
    static void remove(const ConfinedDirectory& directory);
};

}  // namespace sonde::files
