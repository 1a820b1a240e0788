// SPDX-License-Identifier: Apache-2.0
// Loads or writes one page by a list of calls to storage, one after the other.
#pragma once

#include "model/file.hpp"

#include <cerrno>

namespace sonde::buffer {

/// One call that reaches the storage.
struct PageRequest {
    int fd;
    char* data;
    std::uint32_t bytes;
    std::int64_t offset;
};

class PageTransfer {
 public:
    // The next three functions require the lock of the file.
    /// Begins to load the missing parts of [begin, end) of the page. Returns false if none is missing.
    bool begin_load(File& file, Page& page, std::uint32_t begin, std::uint32_t end) noexcept;
    /// Begins to write the oldest dirty page, on which no other job may work.
    void begin_write(File& file) noexcept;
    /// Must be called after make_next_request() has returned that the job is complete. Returns 0 or a negative errno.
    int finish(std::uint64_t spent_ns) noexcept;

    // The next functions do not require the lock, because the page is marked as busy.
    bool make_next_request(PageRequest& request) noexcept;
    /// Stores the result of the last request: transferred bytes, or a negative errno.
    void store_result(ssize_t result) noexcept;
    /// Executes the system call of a request. Returns the transferred bytes or a negative errno.
    ssize_t execute(const PageRequest& request) const noexcept;
    void execute_all() noexcept;

    bool writes() const noexcept { return writes_; }
    File& file() const noexcept { return *file_; }

 private:
    bool select_next_part() noexcept;
    int finish_load() noexcept;
    int finish_write() noexcept;

    File* file_ = nullptr;
    Page* page_ = nullptr;
    bool writes_ = false;
    bool appends_ = false;  ///< to a file that is only appended to: its size afterwards shows whether others wrote
    bool uses_direct_fd_ = false;  ///< the next request uses O_DIRECT
    int fd_ = -1, direct_ = -1;
    std::uint32_t align_ = 0, page_size_ = 0;  ///< copies: the file may be joined by another description meanwhile
    std::int64_t page_offset_ = 0;             ///< of the page in the file
    Range part_{0, 0};                         ///< what is being read or written
    std::uint32_t done_until_ = 0;             ///< up to here it is done
    std::uint32_t begin_ = 0, end_ = 0;        ///< of what is to be loaded
    RangeSet ranges_;                          ///< to be written
    std::uint32_t parts_ = 0;                  ///< begun so far
    std::uint64_t bytes_ = 0;
    std::int64_t kernel_size_ = -1;  ///< after the last write, with appends_
    int error_ = 0;
};

}  // namespace sonde::buffer
