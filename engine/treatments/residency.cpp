// SPDX-License-Identifier: Apache-2.0
// Residency with cachestat(2) and mincore(2).
#include "treatments/residency.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <optional>

namespace sonde::treatments {

namespace {

// Equal on every architecture; C libraries before 2.37 have no constant.
constexpr long cachestat_call = 451;

using CacheRange = DeviceRange;  // as the kernel has it

struct CacheCounts {
    std::uint64_t cached = 0, dirty = 0, writeback = 0, evicted = 0, recently_evicted = 0;
};

std::uint64_t read_page_size() {
    static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

std::optional<CacheCounts> query_cachestat(int descriptor, CacheRange range) {
    CacheCounts counts;
    if (::syscall(cachestat_call, descriptor, &range, &counts, 0U) != 0) {
        return std::nullopt;
    }
    return counts;
}

/// Examines the mapping in windows, so that large files need little memory. mincore() causes no page faults.
std::optional<std::uint64_t> query_mincore(int descriptor, const CacheRange& range) {
    constexpr std::uint64_t window = 1ULL << 30U;
    std::vector<unsigned char> flags(std::min(range.length, window) / read_page_size() + 1);
    std::uint64_t resident = 0;
    const std::uint64_t end = range.offset + range.length;
    for (std::uint64_t position = range.offset; position < end; position += window) {
        const std::uint64_t length = std::min(window, end - position);
        void* base = ::mmap(nullptr, length, PROT_NONE, MAP_SHARED, descriptor, static_cast<off_t>(position));
        if (base == MAP_FAILED) {
            return std::nullopt;
        }
        const bool is_known = ::mincore(base, length, flags.data()) == 0;
        ::munmap(base, length);
        if (!is_known) {
            return std::nullopt;
        }
        const auto pages = static_cast<std::ptrdiff_t>((length + read_page_size() - 1) / read_page_size());
        resident += static_cast<std::uint64_t>(
            std::count_if(flags.begin(), flags.begin() + pages, [](unsigned char flag) { return (flag & 1U) != 0; }));
    }
    return resident;
}

/// mincore(2) is exact only for files that the user owns or may write; for others it reports all pages.
bool may_query_residency(int descriptor, const struct stat& status) {
    return ::geteuid() == 0 || status.st_uid == ::geteuid() || ::faccessat(descriptor, "", W_OK, AT_EMPTY_PATH) == 0;
}

/// The bytes to examine: all of a regular file, `range` of a block device in whole pages. Nothing for other files.
std::optional<CacheRange> choose_range(int descriptor, const struct stat& status, const DeviceRange& range) {
    if (S_ISREG(status.st_mode)) {
        return CacheRange{0, static_cast<std::uint64_t>(status.st_size)};
    }
    const off_t end = S_ISBLK(status.st_mode) ? ::lseek(descriptor, 0, SEEK_END) : -1;
    if (end < 0) {
        return std::nullopt;
    }
    const auto bytes = static_cast<std::uint64_t>(end);
    const std::uint64_t offset = std::min(bytes, range.offset / read_page_size() * read_page_size());
    const std::uint64_t length = range.length + (range.offset - offset);
    return CacheRange{offset, range.length == 0 ? bytes - offset : std::min(bytes - offset, length)};
}

Residency measure_file(const std::string& path, const DeviceRange& device_range) {
    Residency residency;
    // O_NONBLOCK, because open() of a pipe would block.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        return residency;
    }
    struct stat status {};
    const bool has_status = ::fstat(descriptor, &status) == 0;
    if (const auto range = has_status ? choose_range(descriptor, status, device_range) : std::nullopt) {
        residency.pages = (range->length + read_page_size() - 1) / read_page_size();
        // Of a whole file without an end, so that pages of a growing file count.
        const CacheRange query = S_ISREG(status.st_mode) ? CacheRange{} : *range;
        if (const auto counts = query_cachestat(descriptor, query)) {
            residency.is_known = true;
            residency.resident = counts->cached;
            residency.dirty = counts->dirty + counts->writeback;
        } else if (may_query_residency(descriptor, status)) {
            const auto resident = query_mincore(descriptor, *range);
            residency.is_known = resident.has_value();
            residency.resident = resident.value_or(0);
        }
        // Preallocated pages beyond the end of the file may be cached but are not data.
        residency.resident = std::min(residency.resident, residency.pages);
    }
    ::close(descriptor);
    return residency.is_known ? residency : Residency{};
}

}  // namespace

void Residency::add(const Residency& other) {
    pages += other.pages;
    resident += other.resident;
    dirty += other.dirty;
    is_known = is_known || other.is_known;
}

Residency measure_residency(const std::vector<std::string>& files, std::size_t max_files, const DeviceRange& range) {
    Residency total;
    const std::size_t examined = std::min(files.size(), max_files);
    for (std::size_t i = 0; i < examined; ++i) {
        // Equal steps from the first to the last file.
        const std::size_t index =
            examined == files.size() ? i : i * (files.size() - 1) / std::max<std::size_t>(examined - 1, 1);
        total.add(measure_file(files[index], range));
    }
    return total;
}

}  // namespace sonde::treatments
