// SPDX-License-Identifier: Apache-2.0
#include "workloads/walk_stream.hpp"

#include <time.h>
#include <algorithm>
#include <cerrno>

namespace sonde::workloads {

template <class Time>
WalkStream<Time>::WalkStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock,
                             meters::StreamMeter& meter, std::unique_ptr<backends::Channel> channel)
    : TimedStream<Time>(job, team, clock, meter, std::move(channel)),
      tree_(*job.tree),
      meta_(*job.phase->meta),
      names_(*this->channel_->names()),
      how_{false, meta_.lookup == plan::StatCall::statx, meta_.fields, meta_.freshness} {
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
        list.push_back(tree_.shape.top(copy));
    }
    return list;
}

template <class Time>
bool WalkStream<Time>::leave_for(const char* what, std::int64_t result) {
    this->settle();
    this->fail(tree_.root + "/" + path_, what, static_cast<int>(-result), 0);
    return false;
}

/// True when the walk goes on.
template <class Time>
bool WalkStream<Time>::count_entry(std::uint64_t from, std::uint64_t to) {
    ++this->done_;
    const bool passed = this->place(from, to, 0);
    if (passed || this->told_to_stop()) [[unlikely]] {
        this->settle();
        return false;
    }
    return true;
}

template <class Time>
bool WalkStream<Time>::look(backends::Directory directory, const backends::Entry& entry) {
    const std::uint64_t from = this->now();
    const int result = meta_.look_at_all ? names_.look(directory, entry.name, how_) : 0;
    const std::uint64_t to = this->now();
    if (result < 0) [[unlikely]] {
        const std::size_t length = path_.size();
        path_ += std::string("/") + entry.name;
        leave_for("stat", result);
        path_.resize(length);
        return false;
    }
    if (meta_.look_at_all) {
        this->meter_.histogram[meters::kind_stat].add(this->time_.duration_ns(to - from));
    }
    return count_entry(from, to);
}

/// Where the listing does not tell, opening does: links are not followed.
template <class Time>
bool WalkStream<Time>::is_directory(backends::Directory directory, const backends::Entry& entry) {
    if (entry.type_known) {
        return entry.directory;
    }
    const backends::Directory inside = names_.enter(directory, entry.name);
    if (inside >= 0) {
        names_.leave(inside);
    }
    return inside >= 0;
}

template <class Time>
bool WalkStream<Time>::descend(backends::Directory directory, const backends::Entry& entry, std::size_t depth) {
    const std::size_t length = path_.size();
    path_ += "/";
    path_ += entry.name;
    bool good = true;
    if (dealing_) {
        children_.push_back(path_);
    } else {
        tree_.walk->outstanding.fetch_add(1, std::memory_order_relaxed);
        if (!own().put(path_)) {
            const backends::Directory inside = names_.enter(directory, entry.name);
            good = inside >= 0 ? walk_inside(inside, depth + 1) : leave_for("open", inside);
            tree_.walk->outstanding.fetch_sub(1, std::memory_order_release);
        }
    }
    path_.resize(length);
    return good;
}

template <class Time>
bool WalkStream<Time>::visit(backends::Directory directory, const backends::Entry& entry, std::size_t depth) {
    if (counting_ && !look(directory, entry)) {
        return false;
    }
    return !is_directory(directory, entry) || descend(directory, entry, depth);
}

/// Lists an entered directory and leaves it. False when the walk is to end.
template <class Time>
bool WalkStream<Time>::walk_inside(backends::Directory directory, std::size_t depth) {
    std::vector<std::byte>& listing = buffer(depth);
    bool good = true;
    for (std::int64_t got = 1; good && got > 0;) {
        const std::uint64_t from = this->now();
        got = names_.list(directory, listing);
        this->meter_.histogram[meters::kind_readdir].add(this->time_.duration_ns(this->now() - from));
        if (got < 0) {
            good = leave_for("list", got);
        }
        std::size_t place = 0;
        const std::span<const std::byte> listed(listing.data(),
                                                static_cast<std::size_t>(std::max<std::int64_t>(0, got)));
        for (backends::Entry entry; good && names_.next(listed, place, entry);) {
            good = visit(directory, entry, depth);
        }
    }
    this->settle();
    names_.leave(directory);
    return good;
}

template <class Time>
bool WalkStream<Time>::walk(const std::string& path) {
    path_ = path;
    const backends::Directory directory = names_.enter(backends::anywhere, (tree_.root + "/" + path).c_str());
    return directory >= 0 ? walk_inside(directory, 0) : leave_for("open", directory);
}

/// The first stream of a node puts its share of the directories below the roots on its stack. With several nodes each
/// lists the upper levels, which the first node counts, until there are enough directories to deal out.
template <class Time>
bool WalkStream<Time>::begin_walk() {
    std::vector<std::string> share = roots();
    const auto enough = static_cast<std::size_t>(tree_.nodes) * 4;
    bool good = true;
    if (tree_.nodes > 1) {
        dealing_ = true;
        counting_ = tree_.node == 0;
        for (int level = 0; good && level < 8 && share.size() < enough && !share.empty(); ++level) {
            children_.clear();
            for (std::size_t i = 0; good && i < share.size(); ++i) {
                good = walk(share[i]);
            }
            std::sort(children_.begin(), children_.end());  // alike on all nodes
            share.swap(children_);
        }
        dealing_ = false;
        counting_ = true;
        std::vector<std::string> mine;
        for (std::size_t i = static_cast<std::size_t>(tree_.node); i < share.size();
             i += static_cast<std::size_t>(tree_.nodes)) {
            mine.push_back(share[i]);
        }
        share.swap(mine);
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
    while (good && !this->told_to_stop()) {
        if (take(found_)) {
            good = walk(found_);
            tree_.walk->outstanding.fetch_sub(1, std::memory_order_release);
        } else if (tree_.walk->outstanding.load(std::memory_order_acquire) <= 0) {
            break;
        } else {
            constexpr timespec moment{0, 20'000};
            ::nanosleep(&moment, nullptr);
        }
    }
    if (!good) {
        tree_.walk->outstanding.store(-(std::int64_t{1} << 40U));  // nobody waits for what is left
    }
    this->meter_.next_operation = this->done_;
    this->meter_.file_operations = this->done_;
    this->meter_.entries = this->done_;
    this->meter_.part[meters::part_transfer].add(this->phase_ns(from), this->phase_ns(this->now()));
    return false;  // one pass
}

template class WalkStream<MachineTime>;
template class WalkStream<ChannelTime>;

}  // namespace sonde::workloads
