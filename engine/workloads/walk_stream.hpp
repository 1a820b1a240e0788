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
    bool begin_walk();
    std::vector<std::string> roots() const;
    bool walk(const std::string& path);
    bool walk_inside(backends::Directory directory, std::size_t depth);
    bool visit(backends::Directory directory, const backends::DirectoryEntry& entry, std::size_t depth);
    bool descend(backends::Directory directory, const backends::DirectoryEntry& entry, std::size_t depth);
    bool meet(backends::Directory directory, const backends::DirectoryEntry& entry, backends::EntryKind& kind);
    bool opens_as_directory(backends::Directory directory, const char* name);
    bool is_own(const char* name) const { return name[0] == '.' && tree_.own_file == name; }
    bool give(const backends::DirectoryEntry& entry);
    bool hand_over();
    bool open_gift(const std::string& gift);
    bool leave_for(const char* operation, std::int64_t result);
    bool take(std::string& path);
    std::vector<std::byte>& buffer(std::size_t depth);
    bool count_entry(std::uint64_t from, std::uint64_t to);
    WalkStack& own() { return tree_.walk->stack(tree_.stream_on_node); }

    const TreeJob& tree_;
    const plan::Meta& meta_;
    backends::NameOperations& name_operations_;
    backends::StatOptions how_;
    const EntrySearch* search_ = nullptr;         ///< nothing: all entries are alike
    std::string path_;                            ///< of the directory that is being walked, below the run directory
    bool at_top_ = false;                         ///< the walk through a directory began in the run directory itself
    std::string gift_;                            ///< names in one directory, for others to look at
    bool unpacking_ = false;                      ///< what others gave is not given on
    std::string found_;                           ///< what was taken from a stack
    std::deque<std::vector<std::byte>> buffers_;  ///< by depth; their addresses stay
    std::vector<std::string> children_;           ///< of a directory that is dealt out
    bool dealing_ = false;
};

}  // namespace sonde::workloads
