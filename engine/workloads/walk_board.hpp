// SPDX-License-Identifier: Apache-2.0
// How the streams of a node share a walk: each has a short stack of directories that it has found and not entered, from
// which the others take when they have nothing left. Plain data in memory shared by processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::workloads {

/// The work that one stream offers to others: paths of directories, and shared entries (walk_stream.cpp). The owner
/// pushes and pops at one end; other streams steal at the other end. The oldest path is nearest to the root, so it
/// probably holds the most work.
class WalkStack {
 public:
    static constexpr std::uint32_t slot_count = 128;
    static constexpr std::size_t max_path_bytes = 511;  ///< bytes of a path; longer ones are not offered

    /// False when there is no room or the path is too long: then the caller walks it at once.
    bool push(std::string_view path) noexcept;
    bool pop_newest(std::string& path) noexcept;
    bool steal_oldest(std::string& path) noexcept;
    /// Clears the board, including a lock whose owner was killed. Must not run concurrently with other calls.
    void clear() noexcept;

 private:
    struct PathSlot {
        std::uint16_t length;
        char text[max_path_bytes];
    };
    /// A lock for a few hundred nanoseconds. False when it cannot be had for a second: its holder was killed.
    bool lock() noexcept;
    void unlock() noexcept { locked_.store(0, std::memory_order_release); }

    std::atomic<std::uint32_t> locked_;
    std::atomic<std::uint32_t> count_;
    std::uint32_t oldest_;
    PathSlot slots_[slot_count];
};

/// At the start of the shared memory; the stacks follow. Zeroed memory is a valid empty board.
struct WalkBoard {
    /// Directories found and not finished, of all streams, and one for a walk that has not begun.
    std::atomic<std::int64_t> unfinished_directories;
    int stream_count = 0;
    std::atomic<int> idle_streams;  ///< streams that have nothing to do now

    static std::size_t bytes_for(int stream_count) {
        return 4096 + static_cast<std::size_t>(stream_count) * sizeof(WalkStack);
    }
    WalkStack& stack(int stream) {
        return *reinterpret_cast<WalkStack*>(reinterpret_cast<std::byte*>(this) + 4096 +
                                             static_cast<std::size_t>(stream) * sizeof(WalkStack));
    }
    /// Empties everything: a walk has `streams` streams and one task, to begin.
    void reset(int stream_count);
};

}  // namespace sonde::workloads
