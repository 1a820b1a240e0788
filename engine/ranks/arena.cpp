// SPDX-License-Identifier: Apache-2.0
#include "ranks/arena.hpp"

#include "ranks/team_error.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace sonde::ranks {
namespace {

constexpr std::uint64_t max_bytes = 1ULL << 40U;  // address space in the file, not memory
constexpr std::uint64_t min_bytes = 1ULL << 26U;

// Fallback where memfd is forbidden: a file that is unlinked before use.
int open_unnamed_file() {
    const char* temporary = std::getenv("TMPDIR");
    const std::array<const char*, 3> folders{"/dev/shm", temporary != nullptr ? temporary : "/tmp", "/tmp"};
    for (const char* folder : folders) {
        const int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (file >= 0) {
            return file;
        }
        std::string name = std::string(folder) + "/sonde-XXXXXX";
        const int temporary_file = mkostemp(name.data(), O_CLOEXEC);
        if (temporary_file >= 0) {
            unlink(name.c_str());
            return temporary_file;
        }
    }
    return -1;
}

// A file longer than RLIMIT_FSIZE causes a signal (SIGXFSZ), not an error.
std::uint64_t max_arena_bytes() {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        return std::min<std::uint64_t>(max_bytes, limit.rlim_cur);
    }
    return max_bytes;
}

}  // namespace

Arena Arena::create() {
    int descriptor = memfd_create("sonde", MFD_CLOEXEC);
    if (descriptor < 0) {
        descriptor = open_unnamed_file();
    }
    if (descriptor < 0) {
        throw TeamError(
            std::string("cannot make shared memory (memfd, /dev/shm and TMPDIR all refused, the last with: ") +
            std::strerror(errno) + "): set TMPDIR to a folder you can write to");
    }
    for (std::uint64_t size = max_arena_bytes(); size >= min_bytes; size /= 2) {
        if (ftruncate(descriptor, static_cast<off_t>(size)) == 0) {
            return Arena(descriptor);
        }
    }
    const int error = errno;
    close(descriptor);
    throw TeamError(std::string("cannot make 64 MiB of shared memory: ") + std::strerror(error) +
                    "; check `ulimit -f` and free memory");
}

Arena Arena::adopt(int descriptor) {
    return Arena(descriptor);
}

Arena::Arena(int descriptor) : descriptor_(descriptor), reserve_(true) {
    struct stat info {};
    if (fstat(descriptor_, &info) == 0) {
        size_ = static_cast<std::uint64_t>(info.st_size);
        reserve_ = info.st_nlink == 0;
    }
    // memfd files live on the kernel's own unlimited tmpfs; only there a page fault cannot meet a full file system.
    struct statfs system {};
    if (fstatfs(descriptor_, &system) == 0) {
        const bool memory = system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC;
        reserve_ = !memory || system.f_blocks != 0;
    }
}

Arena::Arena(Arena&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      reserve_(other.reserve_),
      next_(other.next_),
      size_(other.size_),
      pieces_(std::move(other.pieces_)) {
    other.pieces_.clear();
}

Arena::~Arena() {
    for (const auto& [start, bytes] : pieces_) {
        munmap(start, bytes);
    }
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

std::byte* Arena::allocate(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t length = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
    const std::string amount = std::to_string((length + (1U << 20U) - 1) >> 20U) + " MiB of shared memory";
    if (length > size_ - next_) {
        throw TeamError("cannot take another " + amount + ": the area of " + std::to_string(size_ >> 20U) +
                        " MiB is used up; raise `ulimit -f`");
    }
    if (reserve_) {
        // Allocating blocks that another process allocated before has no effect.
        const int error = posix_fallocate(descriptor_, static_cast<off_t>(next_), static_cast<off_t>(length));
        if (error != 0) {
            throw TeamError("cannot take " + amount + ": " + std::strerror(error) +
                            "; free space in /dev/shm or TMPDIR");
        }
    }
    void* start = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, static_cast<off_t>(next_));
    if (start == MAP_FAILED) {
        throw TeamError("cannot map " + amount + ": " + std::strerror(errno) + "; check `ulimit -v` and free memory");
    }
    next_ += length;
    pieces_.emplace_back(static_cast<std::byte*>(start), length);
    return pieces_.back().first;
}

std::uint64_t Arena::file_offset(const void* address) const {
    const auto* target = static_cast<const std::byte*>(address);
    std::uint64_t file_offset_of_piece = 0;
    for (const auto& [start, bytes] : pieces_) {
        if (target >= start && target < start + bytes) {
            return file_offset_of_piece + static_cast<std::uint64_t>(target - start);
        }
        file_offset_of_piece += bytes;
    }
    return next_;
}

}  // namespace sonde::ranks
