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
      how_{false, meta_.lookup == plan::StatCall::statx, meta_.fields, meta_.freshness},
      search_(tree_.search ? &*tree_.search : nullptr) {
    if (search_ != nullptr && !meta_.examine_all) {
        how_.fields = search_->fields();
    } else if (search_ != nullptr) {
        how_.fields |= search_->fields();
    }
}

template <class Time>
std::vector<std::byte>& WalkStream<Time>::buffer(std::size_t depth) {
    while (buffers_.size() <= depth) {
        buffers_.emplace_back(std::size_t{32} << 10U);
    }
    return buffers_[depth];
}

/// Where the walk begins, below the run directory.
template <class Time>
std::vector<std::string> WalkStream<Time>::roots() const {
    std::vector<std::string> list;
    if (meta_.from_directory) {
        return {"."};
    }
    for (std::uint64_t copy = 0; copy < tree_.shape.copies(); ++copy) {
        list.push_back(tree_.shape.top_name(copy));
    }
    return list;
}

template <class Time>
bool WalkStream<Time>::leave_for(const char* operation, std::int64_t result) {
    this->settle();
    this->fail(tree_.root + "/" + path_, operation, static_cast<int>(-result), 0);
    return false;
}

/// Returns whether the walk continues.
template <class Time>
bool WalkStream<Time>::count_entry(std::uint64_t from, std::uint64_t to) {
    ++this->done_;
    const bool passed = this->place(from, to, 0);
    if (passed || this->done_ >= tree_.most || this->told_to_stop()) [[unlikely]] {
        this->settle();
        return false;
    }
    return true;
}

/// Counts an entry, after a look at it where that is asked for. `kind` is what is known of it afterwards. False when
/// the walk is to end.
template <class Time>
bool WalkStream<Time>::meet(backends::Directory directory, const backends::DirectoryEntry& entry,
                            backends::EntryKind& kind) {
    const bool unknown = entry.kind == backends::EntryKind::unknown;
    bool fits = search_ != nullptr && search_->fits_name(entry.name) && (unknown || search_->fits_kind(entry.kind));
    const bool looks = meta_.examine_all || (search_ != nullptr && (unknown || (fits && search_->needs_attributes())));
    if (looks && !unpacking_ && !unknown && entry.kind != backends::EntryKind::directory &&
        tree_.walk->waiting.load(std::memory_order_relaxed) > 0 && give(entry)) {
        return true;
    }
    const std::uint64_t from = this->now();
    int result = 0;
    if (looks && search_ != nullptr) {
        backends::EntryAttributes attributes;
        result = name_operations_.read_attributes(directory, entry.name, how_, attributes);
        kind = attributes.kind;
        fits = fits && search_->fits_kind(kind) && search_->matches_size_and_time(attributes);
    } else if (looks) {
        result = name_operations_.stat_entry(directory, entry.name, how_);
    }
    const std::uint64_t to = looks ? this->now() : from;
    if (result < 0) [[unlikely]] {
        const std::size_t length = path_.size();
        path_ += std::string("/") + entry.name;
        leave_for("stat", result);
        path_.resize(length);
        return false;
    }
    if (looks) {
        this->meter_.histogram(meters::kind_stat).add(this->time_.duration_ns(to - from));
        ++this->meter_.examined;
    }
    this->meter_.matched += fits ? 1U : 0U;
    return count_entry(from, to);
}

/// Where the listing does not tell, opening does: links are not followed.
template <class Time>
bool WalkStream<Time>::opens_as_directory(backends::Directory directory, const char* name) {
    const backends::Directory inside = name_operations_.open_directory(directory, name);
    if (inside >= 0) {
        name_operations_.close_directory(inside);
    }
    return inside >= 0;
}

// A gift is what several streams can share of one large directory: "\0", its path, and for each of some names "\0", a
// letter for its kind, the name. It travels as paths of directories do.

/// Keeps an entry for a stream that has nothing to do. False when it does not fit into a gift at all.
template <class Time>
bool WalkStream<Time>::give(const backends::DirectoryEntry& entry) {
    const std::size_t length = std::char_traits<char>::length(entry.name) + 2;
    if (1 + path_.size() + length > WalkStack::longest) {
        return false;
    }
    if (gift_.size() + length > WalkStack::longest && !hand_over()) {
        return false;  // the entry is met here; the walk ends with it, as it was told to
    }
    if (gift_.empty()) {
        gift_.push_back('\0');
        gift_ += path_;
    }
    gift_.push_back('\0');
    gift_.push_back(static_cast<char>('0' + static_cast<int>(entry.kind)));
    gift_ += entry.name;
    return true;
}

/// Offers stored directories to other tasks, or walks them itself when the board is full. False when the walk must end.
template <class Time>
bool WalkStream<Time>::hand_over() {
    if (gift_.empty()) {
        return true;
    }
    bool good = true;
    tree_.walk->outstanding.fetch_add(1, std::memory_order_relaxed);
    if (!own().put(gift_)) {
        const std::string here = path_;
        good = open_gift(gift_);
        path_ = here;
        tree_.walk->outstanding.fetch_sub(1, std::memory_order_release);
    }
    gift_.clear();
    return good;
}

template <class Time>
bool WalkStream<Time>::open_gift(const std::string& gift) {
    std::size_t position = gift.find('\0', 1);
    path_.assign(gift, 1, position - 1);
    const backends::Directory directory =
        name_operations_.open_directory(tree_.directory, tree_.relative(tree_.root + "/" + path_));
    bool good = directory >= 0 || leave_for("open", directory);
    unpacking_ = true;
    while (good && position < gift.size()) {
        const auto kind = static_cast<backends::EntryKind>(gift[position + 1] - '0');
        const char* name = gift.c_str() + position + 2;
        backends::EntryKind actual_kind = kind;
        good = meet(directory, {name, kind}, actual_kind);
        position = std::min(gift.find('\0', position + 1), gift.size());
    }
    unpacking_ = false;
    this->settle();
    if (directory >= 0) {
        name_operations_.close_directory(directory);
    }
    return good;
}

template <class Time>
bool WalkStream<Time>::descend(backends::Directory directory, const backends::DirectoryEntry& entry,
                               std::size_t depth) {
    const std::size_t length = path_.size();
    path_ += '/';
    path_ += entry.name;
    bool good = true;
    if (dealing_) {
        children_.push_back(path_);
    } else {
        tree_.walk->outstanding.fetch_add(1, std::memory_order_relaxed);
        if (!own().put(path_)) {
            const std::string here = path_;
            path_.resize(length);
            good = hand_over();  // a gift holds names of one directory
            path_ = here;
            const backends::Directory inside = good ? name_operations_.open_directory(directory, entry.name) : -EINTR;
            good = good && (inside >= 0 ? walk_inside(inside, depth + 1) : leave_for("open", inside));
            tree_.walk->outstanding.fetch_sub(1, std::memory_order_release);
        }
    }
    path_.resize(length);
    return good;
}

namespace {

/// While directories are dealt out, all nodes list the same ones: each entry is met on one of them.
int node_of(const char* name, int nodes) {
    return static_cast<int>(std::hash<std::string_view>{}(name) % static_cast<std::size_t>(nodes));
}

}  // namespace

template <class Time>
bool WalkStream<Time>::visit(backends::Directory directory, const backends::DirectoryEntry& entry, std::size_t depth) {
    if (at_top_ && depth == 0 && is_own(entry.name)) {
        return true;
    }
    const bool on_this_node = !dealing_ || node_of(entry.name, tree_.nodes) == tree_.node;
    backends::EntryKind kind = entry.kind;
    if (on_this_node && !meet(directory, entry, kind)) {
        return false;
    }
    if (kind == backends::EntryKind::unknown && opens_as_directory(directory, entry.name)) {
        kind = backends::EntryKind::directory;
    }
    if (kind != backends::EntryKind::directory) {
        return true;
    }
    this->meter_.directories += on_this_node ? 1U : 0U;
    return descend(directory, entry, depth);
}

/// Lists an entered directory and leaves it. False when the walk is to end.
template <class Time>
bool WalkStream<Time>::walk_inside(backends::Directory directory, std::size_t depth) {
    std::vector<std::byte>& listing = buffer(depth);
    bool good = true;
    for (std::int64_t got = 1; good && got > 0;) {
        const std::uint64_t from = this->now();
        got = name_operations_.read_entries(directory, listing);
        this->meter_.histogram(meters::kind_readdir).add(this->time_.duration_ns(this->now() - from));
        if (got < 0) {
            good = leave_for("list", got);
        }
        std::size_t position = 0;
        const std::span<const std::byte> listed(listing.data(),
                                                static_cast<std::size_t>(std::max<std::int64_t>(0, got)));
        for (backends::DirectoryEntry entry; good && name_operations_.next_entry(listed, position, entry);) {
            good = visit(directory, entry, depth);
        }
    }
    good = good && hand_over();
    this->settle();
    name_operations_.close_directory(directory);
    return good;
}

template <class Time>
bool WalkStream<Time>::walk(const std::string& path) {
    path_ = path;
    at_top_ = path == ".";
    const backends::Directory directory =
        name_operations_.open_directory(tree_.directory, tree_.relative(tree_.root + "/" + path));
    return directory >= 0 ? walk_inside(directory, 0) : leave_for("open", directory);
}

/// The first stream of a node puts its share of the directories below the roots on its stack. With several nodes each
/// lists the upper levels, and counts its share of them, until there are enough directories to deal out.
template <class Time>
bool WalkStream<Time>::begin_walk() {
    std::vector<std::string> share = roots();
    const auto enough = static_cast<std::size_t>(tree_.nodes) * 4;
    bool good = true;
    if (tree_.nodes > 1) {
        dealing_ = true;
        for (int level = 0; good && level < 8 && share.size() < enough && !share.empty(); ++level) {
            children_.clear();
            for (std::size_t i = 0; good && i < share.size(); ++i) {
                good = walk(share[i]);
            }
            std::sort(children_.begin(), children_.end());  // alike on all nodes
            share.swap(children_);
        }
        dealing_ = false;
        std::vector<std::string> own_share;
        for (std::size_t i = static_cast<std::size_t>(tree_.node); i < share.size();
             i += static_cast<std::size_t>(tree_.nodes)) {
            own_share.push_back(share[i]);
        }
        share.swap(own_share);
    }
    for (std::size_t i = 0; good && i < share.size(); ++i) {
        tree_.walk->outstanding.fetch_add(1);
        if (!own().put(share[i])) {
            good = walk(share[i]);
            tree_.walk->outstanding.fetch_sub(1);
        }
    }
    tree_.walk->outstanding.fetch_sub(1);  // the one for a walk that has not begun
    return good;
}

template <class Time>
bool WalkStream<Time>::take(std::string& path) {
    if (own().take_newest(path)) {
        return true;
    }
    for (int i = 1; i < tree_.walk->streams; ++i) {
        if (tree_.walk->stack((tree_.stream_on_node + i) % tree_.walk->streams).take_oldest(path)) {
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
    bool good = tree_.stream_on_node != 0 || begin_walk();
    bool waiting = false;
    while (good && !this->told_to_stop()) {
        if (take(found_)) {
            if (waiting) {
                tree_.walk->waiting.fetch_sub(1, std::memory_order_relaxed);
                waiting = false;
            }
            good = found_[0] == '\0' ? open_gift(found_) : walk(found_);
            tree_.walk->outstanding.fetch_sub(1, std::memory_order_release);
        } else if (tree_.walk->outstanding.load(std::memory_order_acquire) <= 0) {
            break;
        } else {
            if (!waiting) {
                tree_.walk->waiting.fetch_add(1, std::memory_order_relaxed);
                waiting = true;
            }
            constexpr timespec moment{0, 20'000};
            if (!this->channel_->advance_virtual_time(moment.tv_nsec)) {
                ::nanosleep(&moment, nullptr);
            }
        }
    }
    if (!good) {
        tree_.walk->outstanding.store(-(std::int64_t{1} << 40U));  // no task waits for the remaining entries
    }
    this->meter_.next_operation = this->done_;
    this->meter_.file_operations = this->done_;
    this->meter_.entries = this->done_;
    this->meter_.parts_of_work[meters::part_transfer].add(this->phase_ns(from), this->phase_ns(this->now()));
    return false;  // one pass
}

template class WalkStream<MachineTime>;
template class WalkStream<ChannelTime>;

}  // namespace sonde::workloads
