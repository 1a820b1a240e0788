// SPDX-License-Identifier: Apache-2.0
#include "workloads/walk_stream.hpp"

#include <time.h>
#include <algorithm>
#include <cerrno>
#include <functional>
#include <string_view>

namespace sonde::workloads {

template <class Time>
WalkStream<Time>::WalkStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock,
                             meters::StreamMeter& meter, std::unique_ptr<backends::Channel> channel)
    : TimedStream<Time>(job, team, clock, meter, std::move(channel)),
      tree_(*job.tree),
      meta_(*job.phase->meta),
      name_operations_(*this->channel_->name_operations()),
      stat_options_{false, meta_.stat_call == plan::StatCall::statx, meta_.statx_fields, meta_.statx_sync_flag},
      search_(tree_.search ? &*tree_.search : nullptr) {
    if (search_ != nullptr && !meta_.examine_all) {
        stat_options_.fields = search_->statx_fields();
    } else if (search_ != nullptr) {
        stat_options_.fields |= search_->statx_fields();
    }
}

template <class Time>
std::vector<std::byte>& WalkStream<Time>::listing_buffer(std::size_t depth) {
    while (buffers_.size() <= depth) {
        buffers_.emplace_back(std::size_t{32} << 10U);
    }
    return buffers_[depth];
}

/// Directories at which the walk begins, below the run directory.
template <class Time>
std::vector<std::string> WalkStream<Time>::list_roots() const {
    std::vector<std::string> list;
    if (meta_.walks_run_directory) {
        return {"."};
    }
    for (std::uint64_t copy = 0; copy < tree_.shape.copies(); ++copy) {
        list.push_back(tree_.shape.top_name(copy));
    }
    return list;
}

template <class Time>
bool WalkStream<Time>::fail_at_path(const char* operation, std::int64_t result) {
    this->publish_counts();
    this->fail_operation(tree_.root + "/" + path_, operation, static_cast<int>(-result), 0);
    return false;
}

/// Returns whether the walk continues.
template <class Time>
bool WalkStream<Time>::count_entry(std::uint64_t from, std::uint64_t to) {
    ++this->operations_done_;
    const bool passed = this->count_operation(from, to, 0);
    if (passed || this->operations_done_ >= tree_.entry_limit || this->should_stop()) [[unlikely]] {
        this->publish_counts();
        return false;
    }
    return true;
}

/// Counts an entry, after a look at it where that is asked for. `kind` is what is known of it afterwards. False when
/// the walk is to end.
template <class Time>
bool WalkStream<Time>::count_and_match_entry(backends::Directory directory, const backends::DirectoryEntry& entry,
                                             backends::EntryKind& kind) {
    const bool unknown = entry.kind == backends::EntryKind::unknown;
    bool fits =
        search_ != nullptr && search_->matches_name(entry.name) && (unknown || search_->matches_kind(entry.kind));
    const bool looks = meta_.examine_all || (search_ != nullptr && (unknown || (fits && search_->needs_attributes())));
    if (looks && !is_processing_shared_entries_ && !unknown && entry.kind != backends::EntryKind::directory &&
        tree_.walk->idle_streams.load(std::memory_order_relaxed) > 0 && add_to_shared_entries(entry)) {
        return true;
    }
    const std::uint64_t from = this->now();
    int result = 0;
    if (looks && search_ != nullptr) {
        backends::EntryAttributes attributes;
        result = name_operations_.read_attributes(directory, entry.name, stat_options_, attributes);
        kind = attributes.kind;
        fits = fits && search_->matches_kind(kind) && search_->matches_size_and_time(attributes);
    } else if (looks) {
        result = name_operations_.stat_entry(directory, entry.name, stat_options_);
    }
    const std::uint64_t to = looks ? this->now() : from;
    if (result < 0) [[unlikely]] {
        const std::size_t length = path_.size();
        path_ += std::string("/") + entry.name;
        fail_at_path("stat", result);
        path_.resize(length);
        return false;
    }
    if (looks) {
        this->meter_.histogram(meters::kind_stat).add(this->time_.duration_ns(to - from));
        ++this->meter_.examined_entries;
    }
    this->meter_.matched_entries += fits ? 1U : 0U;
    return count_entry(from, to);
}

/// If the listing has no file type, opening the entry shows it: links are not followed.
template <class Time>
bool WalkStream<Time>::opens_as_directory(backends::Directory directory, const char* name) {
    const backends::Directory inside = name_operations_.open_directory(directory, name);
    if (inside >= 0) {
        name_operations_.close_directory(inside);
    }
    return inside >= 0;
}

// Shared entries let several streams work on one large directory. Their format: "\0", the path of the directory, and
// for each entry "\0", a letter for its kind, its name. They are put on stacks as paths of directories are.

/// Adds an entry to those that an idle stream can process. False if it is too long for a stack slot.
template <class Time>
bool WalkStream<Time>::add_to_shared_entries(const backends::DirectoryEntry& entry) {
    const std::size_t length = std::char_traits<char>::length(entry.name) + 2;
    if (1 + path_.size() + length > WalkStack::max_path_bytes) {
        return false;
    }
    if (shared_entries_.size() + length > WalkStack::max_path_bytes && !offer_shared_entries()) {
        return false;  // this stream counts the entry itself; then the walk ends
    }
    if (shared_entries_.empty()) {
        shared_entries_.push_back('\0');
        shared_entries_ += path_;
    }
    shared_entries_.push_back('\0');
    shared_entries_.push_back(static_cast<char>('0' + static_cast<int>(entry.kind)));
    shared_entries_ += entry.name;
    return true;
}

/// Offers the shared entries to other streams, or processes them here when the stack of this stream does not take them.
/// Returns false when the walk must end.
template <class Time>
bool WalkStream<Time>::offer_shared_entries() {
    if (shared_entries_.empty()) {
        return true;
    }
    bool succeeded = true;
    tree_.walk->unfinished_directories.fetch_add(1, std::memory_order_relaxed);
    if (!own_stack().push(shared_entries_)) {
        const std::string here = path_;
        succeeded = process_shared_entries(shared_entries_);
        path_ = here;
        tree_.walk->unfinished_directories.fetch_sub(1, std::memory_order_release);
    }
    shared_entries_.clear();
    return succeeded;
}

template <class Time>
bool WalkStream<Time>::process_shared_entries(const std::string& entries) {
    std::size_t position = entries.find('\0', 1);
    path_.assign(entries, 1, position - 1);
    const backends::Directory directory =
        name_operations_.open_directory(tree_.directory, tree_.to_relative_path(tree_.root + "/" + path_));
    bool succeeded = directory >= 0 || fail_at_path("open", directory);
    is_processing_shared_entries_ = true;
    while (succeeded && position < entries.size()) {
        const auto kind = static_cast<backends::EntryKind>(entries[position + 1] - '0');
        const char* name = entries.c_str() + position + 2;
        backends::EntryKind actual_kind = kind;
        succeeded = count_and_match_entry(directory, {name, kind}, actual_kind);
        position = std::min(entries.find('\0', position + 1), entries.size());
    }
    is_processing_shared_entries_ = false;
    this->publish_counts();
    if (directory >= 0) {
        name_operations_.close_directory(directory);
    }
    return succeeded;
}

template <class Time>
bool WalkStream<Time>::offer_or_walk_subdirectory(backends::Directory directory, const backends::DirectoryEntry& entry,
                                                  std::size_t depth) {
    const std::size_t length = path_.size();
    path_ += '/';
    path_ += entry.name;
    bool succeeded = true;
    if (is_dividing_among_nodes_) {
        subdirectories_to_divide_.push_back(path_);
    } else {
        tree_.walk->unfinished_directories.fetch_add(1, std::memory_order_relaxed);
        if (!own_stack().push(path_)) {
            const std::string here = path_;
            path_.resize(length);
            succeeded = offer_shared_entries();  // shared entries are of one directory
            path_ = here;
            const backends::Directory inside =
                succeeded ? name_operations_.open_directory(directory, entry.name) : -EINTR;
            succeeded =
                succeeded && (inside >= 0 ? walk_open_directory(inside, depth + 1) : fail_at_path("open", inside));
            tree_.walk->unfinished_directories.fetch_sub(1, std::memory_order_release);
        }
    }
    path_.resize(length);
    return succeeded;
}

namespace {

/// While directories are divided among nodes, all nodes list the same ones, and each entry is counted on one node.
int choose_counting_node(const char* name, int nodes) {
    return static_cast<int>(std::hash<std::string_view>{}(name) % static_cast<std::size_t>(nodes));
}

}  // namespace

template <class Time>
bool WalkStream<Time>::visit_entry(backends::Directory directory, const backends::DirectoryEntry& entry,
                                   std::size_t depth) {
    if (at_top_ && depth == 0 && is_run_file(entry.name)) {
        return true;
    }
    const bool on_this_node = !is_dividing_among_nodes_ || choose_counting_node(entry.name, tree_.nodes) == tree_.node;
    backends::EntryKind kind = entry.kind;
    if (on_this_node && !count_and_match_entry(directory, entry, kind)) {
        return false;
    }
    if (kind == backends::EntryKind::unknown && opens_as_directory(directory, entry.name)) {
        kind = backends::EntryKind::directory;
    }
    if (kind != backends::EntryKind::directory) {
        return true;
    }
    this->meter_.listed_directories += on_this_node ? 1U : 0U;
    return offer_or_walk_subdirectory(directory, entry, depth);
}

/// Lists an entered directory and leaves it. False when the walk is to end.
template <class Time>
bool WalkStream<Time>::walk_open_directory(backends::Directory directory, std::size_t depth) {
    std::vector<std::byte>& listing = listing_buffer(depth);
    bool succeeded = true;
    for (std::int64_t got = 1; succeeded && got > 0;) {
        const std::uint64_t from = this->now();
        got = name_operations_.read_entries(directory, listing);
        this->meter_.histogram(meters::kind_readdir).add(this->time_.duration_ns(this->now() - from));
        if (got < 0) {
            succeeded = fail_at_path("list", got);
        }
        std::size_t position = 0;
        const std::span<const std::byte> listed(listing.data(),
                                                static_cast<std::size_t>(std::max<std::int64_t>(0, got)));
        for (backends::DirectoryEntry entry; succeeded && name_operations_.next_entry(listed, position, entry);) {
            succeeded = visit_entry(directory, entry, depth);
        }
    }
    succeeded = succeeded && offer_shared_entries();
    this->publish_counts();
    name_operations_.close_directory(directory);
    return succeeded;
}

template <class Time>
bool WalkStream<Time>::walk_directory(const std::string& path) {
    path_ = path;
    at_top_ = path == ".";
    const backends::Directory directory =
        name_operations_.open_directory(tree_.directory, tree_.to_relative_path(tree_.root + "/" + path));
    return directory >= 0 ? walk_open_directory(directory, 0) : fail_at_path("open", directory);
}

/// The first stream of a node puts its share of the directories below the roots on its stack. With several nodes each
/// lists the upper levels, and counts its share of them, until there are enough directories to distribute.
template <class Time>
bool WalkStream<Time>::divide_roots() {
    std::vector<std::string> share = list_roots();
    const auto enough = static_cast<std::size_t>(tree_.nodes) * 4;
    bool succeeded = true;
    if (tree_.nodes > 1) {
        is_dividing_among_nodes_ = true;
        for (int level = 0; succeeded && level < 8 && share.size() < enough && !share.empty(); ++level) {
            subdirectories_to_divide_.clear();
            for (std::size_t i = 0; succeeded && i < share.size(); ++i) {
                succeeded = walk_directory(share[i]);
            }
            std::sort(subdirectories_to_divide_.begin(), subdirectories_to_divide_.end());  // alike on all nodes
            share.swap(subdirectories_to_divide_);
        }
        is_dividing_among_nodes_ = false;
        std::vector<std::string> own_share;
        for (std::size_t i = static_cast<std::size_t>(tree_.node); i < share.size();
             i += static_cast<std::size_t>(tree_.nodes)) {
            own_share.push_back(share[i]);
        }
        share.swap(own_share);
    }
    for (std::size_t i = 0; succeeded && i < share.size(); ++i) {
        tree_.walk->unfinished_directories.fetch_add(1);
        if (!own_stack().push(share[i])) {
            succeeded = walk_directory(share[i]);
            tree_.walk->unfinished_directories.fetch_sub(1);
        }
    }
    tree_.walk->unfinished_directories.fetch_sub(1);  // the one for a walk that has not begun
    return succeeded;
}

template <class Time>
bool WalkStream<Time>::take_work(std::string& path) {
    if (own_stack().pop_newest(path)) {
        return true;
    }
    for (int i = 1; i < tree_.walk->stream_count; ++i) {
        if (tree_.walk->stack((tree_.stream_on_node + i) % tree_.walk->stream_count).steal_oldest(path)) {
            return true;
        }
    }
    return false;
}

template <class Time>
bool WalkStream<Time>::run_pass(std::uint64_t /*pass*/) {
    if (tree_.walk == nullptr) {
        return false;  // a task that only waits
    }
    const std::uint64_t from = this->now();
    bool succeeded = tree_.stream_on_node != 0 || divide_roots();
    bool waiting = false;
    while (succeeded && !this->should_stop()) {
        if (take_work(taken_work_)) {
            if (waiting) {
                tree_.walk->idle_streams.fetch_sub(1, std::memory_order_relaxed);
                waiting = false;
            }
            succeeded = taken_work_[0] == '\0' ? process_shared_entries(taken_work_) : walk_directory(taken_work_);
            tree_.walk->unfinished_directories.fetch_sub(1, std::memory_order_release);
        } else if (tree_.walk->unfinished_directories.load(std::memory_order_acquire) <= 0) {
            break;
        } else {
            if (!waiting) {
                tree_.walk->idle_streams.fetch_add(1, std::memory_order_relaxed);
                waiting = true;
            }
            constexpr timespec moment{0, 20'000};
            if (!this->channel_->advance_virtual_time(moment.tv_nsec)) {
                ::nanosleep(&moment, nullptr);
            }
        }
    }
    if (!succeeded) {
        tree_.walk->unfinished_directories.store(-(std::int64_t{1} << 40U));  // no task waits for the remaining entries
    }
    this->meter_.next_operation = this->operations_done_;
    this->meter_.file_operations = this->operations_done_;
    this->meter_.listed_entries = this->operations_done_;
    this->meter_.parts_of_work[meters::part_transfer].add(this->ns_since_phase_start(from),
                                                          this->ns_since_phase_start(this->now()));
    return false;  // one pass
}

template class WalkStream<MachineClock>;
template class WalkStream<ChannelClock>;

}  // namespace sonde::workloads
