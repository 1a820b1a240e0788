// SPDX-License-Identifier: Apache-2.0
// Backend mmap: files are mapped when they are opened, and bytes move by memcpy. Knows page faults that fail (SIGBUS)
// and turns them into error numbers.
#include "backends/backend.hpp"
#include "backends/fault_guard.hpp"
#include "backends/open_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace sonde::backends {

namespace {

/// One open file. The mapping may be longer than the file: pages become usable when the file grows.
struct MappedFile {
    int descriptor = -1;
    bool writable = false;
    std::byte* base = nullptr;
    std::uint64_t mapped_bytes = 0;  ///< bytes
    std::uint64_t size = 0;          ///< bytes of the file as far as this task knows
};

std::uint64_t page_size() {
    static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

std::uint64_t file_size(int descriptor) {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) {
        return 0;
    }
    // st_size of a block device is 0.
    return static_cast<std::uint64_t>(S_ISBLK(status.st_mode) ? std::max<off_t>(0, ::lseek(descriptor, 0, SEEK_END))
                                                              : status.st_size);
}

int map_file(MappedFile& file, std::uint64_t bytes) {
    const int protection = file.writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* base = file.base == nullptr ? ::mmap(nullptr, bytes, protection, MAP_SHARED, file.descriptor, 0)
                                      : ::mremap(file.base, file.mapped_bytes, bytes, MREMAP_MAYMOVE);
    if (base == MAP_FAILED) {
        return -errno;
    }
    file.base = static_cast<std::byte*>(base);
    file.mapped_bytes = bytes;
    return 0;
}

/// Another task may grow the same file at the same time: looking and growing happen under a lock where there are locks.
int grow_shared(int descriptor, std::uint64_t bytes) {
    const bool locked = ::flock(descriptor, LOCK_EX) == 0;
    const int failed = preallocate(descriptor, plan::Preallocate::truncate, bytes);
    if (locked) {
        ::flock(descriptor, LOCK_UN);
    }
    return failed;
}

/// Makes the first `end` bytes addressable. Off the common path: plans announce the size when they open a file.
int extend(MappedFile& file, std::uint64_t end) {
    file.size = std::max(file.size, file_size(file.descriptor));
    if (end > file.size) {
        const int failed = grow_shared(file.descriptor, end);
        if (failed != 0) {
            return failed;
        }
        file.size = end;
    }
    // Twice as much address space as needed, so that a file that grows in small steps is rarely mapped anew.
    return end > file.mapped_bytes ? map_file(file, end * 2) : 0;
}

/// Why a page could not be had: a read or write of one byte there gives the error that a page fault cannot.
int find_fault_errno(const MappedFile& file, const IoRequest& operation, const std::byte* address) {
    const auto offset =
        static_cast<off_t>(std::max<std::uint64_t>(static_cast<std::uint64_t>(address - file.base), operation.offset));
    if (static_cast<std::uint64_t>(offset) >= file_size(file.descriptor)) {
        return -EIO;  // somebody made the file smaller
    }
    std::byte byte{};
    ssize_t moved = 0;
    if (operation.is_write) {
        // The very byte that the operation was going to put there.
        const auto into = static_cast<std::uint64_t>(offset) - operation.offset;
        byte = operation.buffer[std::min<std::uint64_t>(into, operation.length - 1)];
        moved = ::pwrite(file.descriptor, &byte, 1, offset);
    } else {
        moved = ::pread(file.descriptor, &byte, 1, offset);
    }
    if (moved < 0) {
        return -errno;
    }
    // A fault may ask for a whole huge page at once, which a nearly full file system refuses while a byte still fits.
    constexpr std::uint64_t huge_page = 2U << 20U;
    struct statvfs space {};
    const bool full = operation.is_write && ::fstatvfs(file.descriptor, &space) == 0 &&
                      static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize < huge_page;
    return full ? -ENOSPC : -EIO;
}

class MmapChannel final : public Channel {
 public:
    explicit MmapChannel(const ChannelSetup& setup)
        : io_settings_(*setup.io), files_(setup.file_count), sync_each_(setup.io->fsync == plan::Fsync::per_op) {
        install_fault_guard();
    }
    ~MmapChannel() override {
        for (std::size_t i = 0; i < files_.size(); ++i) {
            MmapChannel::close(static_cast<std::uint16_t>(i));
        }
    }

    int open(std::uint16_t index, const OpenRequest& request) override {
        MappedFile& file = files_.at(index);
        OpenRequest wanted = request;
        wanted.read = true;  // a shared writable mapping needs a descriptor that can read
        const int descriptor = open_file(io_settings_, wanted);
        if (descriptor < 0) {
            return descriptor;
        }
        file = {.descriptor = descriptor, .writable = request.write};
        file.size = file_size(descriptor);
        const std::uint64_t bytes = request.write ? std::max(request.size, file.size) : file.size;
        int failed = 0;
        if (bytes > file.size) {
            failed = grow_shared(descriptor, bytes);
            file.size = bytes;
        }
        if (failed == 0 && bytes > 0) {
            failed = map_file(file, bytes);
        }
        if (failed != 0) {
            ::close(descriptor);
            file = {};
        }
        return failed;
    }

    int fsync(std::uint16_t index) override {
        const MappedFile& file = files_.at(index);
        const std::uint64_t bytes = std::min(file.mapped_bytes, file.size);
        if (file.writable && bytes > 0 && ::msync(file.base, bytes, MS_SYNC) != 0) {
            return -errno;
        }
        return sync_file(file.descriptor);
    }

    int close(std::uint16_t index) override {
        MappedFile& file = files_.at(index);
        if (file.descriptor < 0) {
            return 0;
        }
        if (file.base != nullptr) {
            ::munmap(file.base, file.mapped_bytes);
        }
        const int result = close_file(file.descriptor);
        file = {};
        return result;
    }

    std::int64_t transfer(const IoRequest& operation) noexcept override {
        MappedFile& file = files_[operation.file_index];
        const std::uint64_t end = operation.offset + operation.length;
        auto bytes = static_cast<std::int64_t>(operation.length);
        if (end > std::min(file.mapped_bytes, file.size)) {
            bytes = prepare_access_beyond_end(file, operation, end);
            if (bytes <= 0) {
                return bytes;
            }
        }
        const std::int64_t moved = copy_data(file, operation, static_cast<std::size_t>(bytes));
        if (sync_each_ && operation.is_write && moved > 0) [[unlikely]] {
            const int failed = sync_range(file, operation);
            return failed != 0 ? failed : moved;
        }
        return moved;
    }

 private:
    static int sync_range(const MappedFile& file, const IoRequest& operation) noexcept {
        const std::uint64_t first = operation.offset / page_size() * page_size();
        return ::msync(file.base + first, operation.offset + operation.length - first, MS_SYNC) == 0 ? 0 : -errno;
    }

    /// An operation that goes beyond what is mapped: how many bytes of it can be moved, 0 = end of file, or -errno.
    static std::int64_t prepare_access_beyond_end(MappedFile& file, const IoRequest& operation,
                                                  std::uint64_t end) noexcept {
        if (operation.is_write) {
            const int failed = file.writable ? extend(file, end) : -EBADF;
            return failed != 0 ? failed : static_cast<std::int64_t>(operation.length);
        }
        file.size = file_size(file.descriptor);
        if (operation.offset >= file.size) {
            return 0;
        }
        const std::uint64_t last = std::min(end, file.size);
        if (last > file.mapped_bytes) {
            const int failed = map_file(file, file.size);
            if (failed != 0) {
                return failed;
            }
        }
        return static_cast<std::int64_t>(last - operation.offset);
    }

    static std::int64_t copy_data(MappedFile& file, const IoRequest& operation, std::size_t bytes) noexcept {
        std::byte* address = file.base + operation.offset;
        const MappedRange mapped{address, bytes};
        const std::byte* fault = operation.is_write ? guarded_copy(address, operation.buffer, bytes, mapped)
                                                    : guarded_copy(operation.buffer, address, bytes, mapped);
        return fault == nullptr ? static_cast<std::int64_t>(bytes) : find_fault_errno(file, operation, fault);
    }

    const plan::Io& io_settings_;
    std::vector<MappedFile> files_;
    bool sync_each_ = false;
};

/// Some file systems (FUSE with direct I/O, a few parallel ones) have no shared writable mappings.
int try_mapping(int descriptor) {
    constexpr std::size_t bytes = 4096;
    if (::ftruncate(descriptor, bytes) != 0) {
        return errno;
    }
    void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (base == MAP_FAILED) {
        return errno;
    }
    ::munmap(base, bytes);
    return 0;
}

Availability check_availability(const std::string& directory) {
    if (directory.empty()) {
        return {};
    }
    int descriptor = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        std::string path = directory + "/.sonde-probe-XXXXXX";
        descriptor = ::mkostemp(path.data(), O_CLOEXEC);
        if (descriptor < 0) {
            return {false, "Cannot try a mapping in " + directory + ": " + std::strerror(errno) +
                               "; choose a target directory that can be written."};
        }
        ::unlink(path.c_str());
    }
    const int failed = try_mapping(descriptor);
    ::close(descriptor);
    if (failed == 0) {
        return {};
    }
    return {false, "The file system at " + directory + " has no shared writable mappings (" + std::strerror(failed) +
                       "); use the backend posix there."};
}

std::unique_ptr<Channel> make_channel(const ChannelSetup& setup) {
    if (setup.io->direct) {
        throw std::runtime_error(
            "The backend mmap works through the page cache, so it cannot do direct I/O: leave out io.direct, or use "
            "posix.");
    }
    if (setup.io->sync_flag != plan::SyncFlag::none) {
        throw std::runtime_error(
            "Writes through a mapping ignore O_SYNC and O_DSYNC: use io.fsync with the backend mmap, or use posix.");
    }
    return std::make_unique<MmapChannel>(setup);
}

}  // namespace

extern const Backend mmap_backend;
const Backend mmap_backend{
    .name = "mmap",
    .summary = "files mapped into memory, bytes moved by memcpy",
    .traits = {},
    .check_availability = check_availability,
    .make_channel = make_channel,
};

}  // namespace sonde::backends
