// SPDX-License-Identifier: Apache-2.0
// State of the data files after the phases so far: writer, written bytes and version of each part. A read never
// asks for more than was really written, and verification knows which generation to expect.
#pragma once

#include "files/file_map.hpp"
#include "plan/plan.hpp"
#include "workloads/stream.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sonde::files {

/// The trace of one writing phase.
struct DataState {
    std::string phase;
    std::uint64_t generation = 0;
    plan::Access access;
    std::uint64_t segments = 0;
    std::string file_name_suffix;   ///< of the files' names
    std::vector<int> file_indices;  ///< mapping many: which of each task's files
    std::vector<std::uint64_t>
        operations_by_task;       ///< by task: operations done of the first pass, over its files in order
    bool is_order_known = true;   ///< false: mixed, duplex, random with replacement: which blocks are new is not known
    bool adds_data = true;        ///< false: mixed: changes versions of existing data, adds none
    bool replaces_files = false;  ///< the files were made anew: nothing of earlier states is left in them
    bool has_file(int k) const;
    bool covers_files_of(const DataState& other) const;  ///< all its files are among those of this state
    std::uint64_t operations_per_file() const { return access.block / access.transfer * segments; }
};

/// Bytes `from` … `to` - 1 of a file.
struct ByteRange {
    std::uint64_t from = 0, to = 0;
};

class Dataset {
 public:
    /// The newest state. Files that are made anew leave nothing of the states before, so these are forgotten.
    void add_state(DataState state);
    /// Files with this suffix were removed.
    void forget(const std::string& suffix);
    /// The state that holds what a phase reads of the k-th file of each task: that of the phase named, or the newest
    /// with that file.
    const DataState* find_source(const plan::Phase& phase, int k) const;
    /// True when a read with this access of the k-th files knows the generation of every block that it finds.
    bool is_verifiable(const DataState& source, const plan::Access& access, std::uint64_t segments, int k) const;
    /// Which generation each operation of (task, k-th file) carries, newest first. Only when that is verifiable.
    std::vector<workloads::WrittenGeneration> list_generations(const DataState& source, const plan::Access& access,
                                                               std::uint64_t segments, int task, int k) const;
    /// Ranges of a task's k-th file that a read with another geometry than the writers' may access: parts that are
    /// certainly written, that of `source` first, then what older states left.
    std::vector<ByteRange> list_written_ranges(const DataState& source, const FileMap& map, int task, int k,
                                               int tasks) const;
    const std::vector<DataState>& states() const { return states_; }

    nlohmann::json to_json() const;
    static Dataset from_json(const nlohmann::json& json);

 private:
    std::vector<DataState> states_;
};

/// Same addresses in the same order.
bool is_same_geometry(const plan::Access& a, std::uint64_t segments_a, const plan::Access& b, std::uint64_t segments_b);

/// Operations of the k-th file that a task has done, of `per_file`, when its files were done in the order of the state.
std::uint64_t operations_in_file(const DataState& state, int task, int k, std::uint64_t per_file);

/// Task that wrote the byte at `offset` of a task's files; -1 if unknown (random order over a shared file).
int find_writer(const DataState& state, const FileMap& map, int task, std::uint64_t offset, int tasks);

/// The part of a task's k-th file that is certainly written without a hole. Empty if unknown.
std::optional<ByteRange> find_written_range(const DataState& state, const FileMap& map, int task, int k, int tasks);

}  // namespace sonde::files
