// SPDX-License-Identifier: Apache-2.0
// A walk through trees as they are found on storage, depth first, shared by the streams of a node. What there is is not
// known beforehand, so trees that others made can be walked too.
#pragma once

#include "workloads/timed_stream.hpp"
#include "workloads/tree_job.hpp"
#include "workloads/walk_board.hpp"

#include <deque>
#include <string>
#include <vector>

namespace sonde::workloads {

/// One operation per entry: listed, and examined if the plan requires it. The directories
/// below the root are divided among the nodes before the walk; on a node, streams without work take it from others.
template <class Time>
class WalkStream final : public TimedStream<Time> {
 public:
    WalkStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock, meters::StreamMeter& meter,
               std::unique_ptr<backends::Channel> channel);

 private:
    bool run_pass(std::uint64_t pass) override;
    bool divide_roots();
    std::vector<std::string> list_roots() const;
    bool walk_directory(const std::string& path);
    bool walk_open_directory(backends::Directory directory, std::size_t depth);
    bool visit_entry(backends::Directory directory, const backends::DirectoryEntry& entry, std::size_t depth);
    bool offer_or_walk_subdirectory(backends::Directory directory, const backends::DirectoryEntry& entry,
                                    std::size_t depth);
    bool count_and_match_entry(backends::Directory directory, const backends::DirectoryEntry& entry,
                               backends::EntryKind& kind);
    bool opens_as_directory(backends::Directory directory, const char* name);
    bool is_run_file(const char* name) const { return name[0] == '.' && tree_.run_file == name; }
    bool add_to_shared_entries(const backends::DirectoryEntry& entry);
    bool offer_shared_entries();
    bool process_shared_entries(const std::string& entries);
    bool fail_at_path(const char* operation, std::int64_t result);
    bool take_work(std::string& path);
    std::vector<std::byte>& listing_buffer(std::size_t depth);
    bool count_entry(std::uint64_t from, std::uint64_t to);
    WalkStack& own_stack() { return tree_.walk->stack(tree_.stream_on_node); }

    const TreeJob& tree_;
    const plan::Meta& meta_;
    backends::NameOperations& name_operations_;
    backends::StatOptions stat_options_;
    const EntrySearch* search_ = nullptr;         ///< null: no search
    std::string path_;                            ///< of the directory that is being walked, below the run directory
    bool at_top_ = false;                         ///< the walk through a directory began in the run directory itself
    std::string shared_entries_;                  ///< entries of one directory, for idle streams
    bool is_processing_shared_entries_ = false;   ///< shared entries are not shared again
    std::string taken_work_;                      ///< the path or entries that were taken from a stack
    std::deque<std::vector<std::byte>> buffers_;  ///< by depth; their addresses stay
    std::vector<std::string> subdirectories_to_divide_;  ///< of directories that are divided among nodes
    bool is_dividing_among_nodes_ = false;
};

}  // namespace sonde::workloads
