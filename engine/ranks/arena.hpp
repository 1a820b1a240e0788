// SPDX-License-Identifier: Apache-2.0
// Memory that the processes of one node share: a file without a name (memfd), so that nothing stays behind however the
// processes end. The file is sparse and far larger than needed. Every process allocates pieces in the same order, and
// so finds each piece at the same offset without communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sonde::ranks {

class Arena {
 public:
    /// A new, empty arena. Throws TeamError when no shared memory can be created.
    static Arena create();
    /// The arena of a descriptor that another process sent. The arena owns the descriptor.
    static Arena adopt(int descriptor);

    Arena(Arena&& other) noexcept;
    Arena& operator=(Arena&&) = delete;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    /// The next piece: zeroed, page aligned, mapped until the arena ends. Throws TeamError when memory is short.
    std::byte* allocate(std::size_t bytes);
    int descriptor() const { return descriptor_; }
    /// Bytes allocated so far; all pieces lie below this offset of the file.
    std::uint64_t allocated_bytes() const { return next_; }
    /// Offset in the file of an address in a piece; allocated_bytes() for any other address.
    std::uint64_t file_offset(const void* address) const;

 private:
    explicit Arena(int descriptor);
    int descriptor_;
    bool reserve_;  // the file lies in a file system that may fill up: claim the space before it is touched
    std::uint64_t next_ = 0;
    std::uint64_t size_ = 0;
    std::vector<std::pair<std::byte*, std::size_t>> pieces_;
};

}  // namespace sonde::ranks
