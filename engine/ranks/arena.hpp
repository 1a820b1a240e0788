// SPDX-License-Identifier: Apache-2.0
// Memory that the processes of one node share. It is a file without a name (memfd), so nothing is left behind however
// the processes end. The file is sparse and far larger than needed: every process takes pieces in the same order and
// so finds the same piece at the same place without a word between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sonde::ranks {

class Arena {
 public:
    /// A new, empty arena. Throws TeamError when the machine has no place for one.
    static Arena create();
    /// The arena behind a descriptor that came from another process; takes the descriptor over.
    static Arena adopt(int descriptor);

    Arena(Arena&& other) noexcept;
    Arena& operator=(Arena&&) = delete;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    /// The next piece: zeroed, page aligned, mapped until the arena ends. Throws TeamError when memory is short.
    std::byte* take(std::size_t bytes);
    int descriptor() const { return descriptor_; }
    /// Bytes taken so far: everything taken lies below.
    std::uint64_t taken() const { return next_; }
    /// Where an address in a piece lies in the file; taken() when it is in none.
    std::uint64_t place_of(const void* address) const;

 private:
    explicit Arena(int descriptor);
    int descriptor_;
    bool reserve_;  // the file lies in a file system that may fill up: claim the space before it is touched
    std::uint64_t next_ = 0;
    std::uint64_t size_ = 0;
    std::vector<std::pair<std::byte*, std::size_t>> pieces_;
};

}  // namespace sonde::ranks
