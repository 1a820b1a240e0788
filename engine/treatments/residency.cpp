// SPDX-License-Identifier: Apache-2.0
// Knows cachestat(2) and mincore(2).
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

// The same number on every architecture; C libraries before 2.37 do not name it.
constexpr long cachestat_call = 451;

struct CacheRange {
    std::uint64_t offset = 0, length = 0;  ///< length 0 = to the end of the file
};

struct CacheCounts {
    std::uint64_t cached = 0, dirty = 0, writeback = 0, evicted = 0, recently_evicted = 0;
};

std::uint64_t page_size() {
    static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

std::optional<CacheCounts> ask_cachestat(int descriptor) {
    CacheRange range;
    CacheCounts counts;
    if (::syscall(cachestat_call, descriptor, &range, &counts, 0U) != 0) {
        return std::nullopt;
    }
    return counts;
}

/// Window by window, so that the answer of a large file needs little memory. Looking at a mapping faults nothing in.
std::optional<std::uint64_t> ask_mincore(int descriptor, std::uint64_t bytes) {
    constexpr std::uint64_t window = 1ULL << 30U;
    std::vector<unsigned char> flags(std::min(bytes, window) / page_size() + 1);
    std::uint64_t resident = 0;
    for (std::uint64_t at = 0; at < bytes; at += window) {
        const std::uint64_t length = std::min(window, bytes - at);
        void* base = ::mmap(nullptr, length, PROT_NONE, MAP_SHARED, descriptor, static_cast<off_t>(at));
        if (base == MAP_FAILED) {
            return std::nullopt;
        }
        const bool known = ::mincore(base, length, flags.data()) == 0;
        ::munmap(base, length);
        if (!known) {
            return std::nullopt;
        }
        const auto pages = static_cast<std::ptrdiff_t>((length + page_size() - 1) / page_size());
        resident += static_cast<std::uint64_t>(
            std::count_if(flags.begin(), flags.begin() + pages, [](unsigned char flag) { return (flag & 1U) != 0; }));
    }
    return resident;
}

/// mincore(2) tells the truth only to those who own the file or may write it; others are told "all".
bool told_the_truth(int descriptor, const struct stat& status) {
    return ::geteuid() == 0 || status.st_uid == ::geteuid() || ::faccessat(descriptor, "", W_OK, AT_EMPTY_PATH) == 0;
}

Residency measure_file(const std::string& path) {
    Residency found;
    // Without O_NONBLOCK a pipe in the place of the file would hold us up.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        return found;
    }
    struct stat status {};
    if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        const auto bytes = static_cast<std::uint64_t>(status.st_size);
        found.pages = (bytes + page_size() - 1) / page_size();
        if (const auto counts = ask_cachestat(descriptor)) {
            found.known = true;
            found.resident = counts->cached;
            found.dirty = counts->dirty + counts->writeback;
        } else if (told_the_truth(descriptor, status)) {
            const auto resident = ask_mincore(descriptor, bytes);
            found.known = resident.has_value();
            found.resident = resident.value_or(0);
        }
        // Preallocated pages beyond the end are in the cache, too, but they are not data.
        found.resident = std::min(found.resident, found.pages);
    }
    ::close(descriptor);
    return found.known ? found : Residency{};
}

}  // namespace

void Residency::add(const Residency& other) {
    pages += other.pages;
    resident += other.resident;
    dirty += other.dirty;
    known = known || other.known;
}

Residency measure_residency(const std::vector<std::string>& files, std::size_t max_files) {
    Residency all;
    const std::size_t looked_at = std::min(files.size(), max_files);
    for (std::size_t i = 0; i < looked_at; ++i) {
        // From the first to the last in equal steps.
        const std::size_t index =
            looked_at == files.size() ? i : i * (files.size() - 1) / std::max<std::size_t>(looked_at - 1, 1);
        all.add(measure_file(files[index]));
    }
    return all;
}

}  // namespace sonde::treatments
