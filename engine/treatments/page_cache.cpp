// SPDX-License-Identifier: Apache-2.0
// The treatments `drop_page_cache` (all of it; root) and `fadvise` (the files of the run).
#include "treatments/treatment_kind.hpp"
#include "treatments/write_back.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

namespace sonde::treatments {
namespace {

using Status = TreatmentResult::Status;

/// Drops all clean pages, inodes and directory entries. Returns 0 or errno, -1 = stopped.
int drop_all_caches(const StopPredicate& stop) {
    const auto error = std::make_shared<int>(0);
    const bool finished = run_until_stopped(
        [error] {
            const int descriptor = ::open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
            if (descriptor < 0 || ::write(descriptor, "3", 1) != 1) {
                *error = errno;
            }
            if (descriptor >= 0) {
                ::close(descriptor);
            }
        },
        stop);
    return finished ? *error : -1;
}

/// Shared with the thread, which may outlive its caller.
struct AdvisedFiles {
    std::vector<std::string> files;
    std::atomic<bool> is_stop_requested{false};
    std::atomic<std::size_t> advised_count{0};
    std::size_t failed_count = 0;
    int error = 0;     ///< the first
    std::string path;  ///< where it happened
};

/// Drops the cached pages of one file. `durable`: after fdatasync, which some file systems require but which flushes
/// the device once per file; otherwise dirty pages are only written to the device.
int advise_file(const std::string& path, bool durable) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return errno;
    }
    // Only clean pages can be dropped. Where sync_file_range is not supported, the pages stay, which the caller
    // detects.
    constexpr unsigned write_and_wait =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    int error = 0;
    if (durable) {
        error = ::fdatasync(descriptor) == 0 ? 0 : errno;
    } else {
        ::sync_file_range(descriptor, 0, 0, write_and_wait);
    }
    if (error == 0) {
        error = ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    }
    ::close(descriptor);
    return error;
}

void advise_all(AdvisedFiles& all, bool durable) {
    all.failed_count = 0;
    all.advised_count = 0;
    for (const std::string& path : all.files) {
        if (all.is_stop_requested.load()) {
            return;
        }
        const int error = advise_file(path, durable);
        if (error != 0) {
            all.path = all.failed_count == 0 ? path : all.path;
            all.error = all.failed_count == 0 ? error : all.error;
            ++all.failed_count;
        }
        ++all.advised_count;
    }
}

TreatmentResult apply_fadvise(const TreatmentRequest& context) {
    const std::vector<std::string>& files = context.files;
    if (files.empty()) {
        return make_result(Status::skipped, "There are no data files yet whose pages could be given up.");
    }
    const auto all = std::make_shared<AdvisedFiles>();
    all->files = files;
    const auto drop_pages = [all] {
        advise_all(*all, false);
        if (!all->is_stop_requested.load() && (all->failed_count > 0 || measure_residency(all->files).resident > 0)) {
            advise_all(*all, true);
        }
    };
    if (!run_until_stopped(drop_pages, context.stop)) {
        all->is_stop_requested = true;
        return make_result(Status::failed,
                           "Stopped after the pages of " + std::to_string(all->advised_count.load()) + " files.");
    }
    if (all->failed_count > 0) {
        return make_result(Status::failed, "The pages of " + std::to_string(all->failed_count) + " of " +
                                               std::to_string(files.size()) + " files could not be given up; first " +
                                               all->path + ": " + std::strerror(all->error) + ".");
    }
    return make_result(Status::done,
                       "Gave up the cached pages of " + std::to_string(files.size()) + " files (fadvise).");
}

TreatmentResult apply_drop(const TreatmentRequest& context) {
    // drop_caches does not drop dirty pages.
    TreatmentResult synced = write_back(context.directory, context.stop);
    if (synced.outcome != Status::done) {
        return synced;
    }
    const int error = drop_all_caches(context.stop);
    if (error < 0) {
        return make_result(Status::failed, "Stopped while the page cache was being dropped.");
    }
    if (error == 0) {
        TreatmentResult dropped = make_result(Status::done, "Dropped the page cache of this node.");
        dropped.dropped_metadata_cache = true;
        return dropped;
    }
    TreatmentResult fallback = apply_fadvise(context);
    fallback.text = std::string("Dropping the whole page cache needs root (") + std::strerror(error) +
                    "), so only this run's files were asked for. " + fallback.text;
    return fallback;
}

}  // namespace

extern const TreatmentKind drop_page_cache_treatment;
const TreatmentKind drop_page_cache_treatment{
    .capability = {.name = "drop_page_cache"}, .empties_caches = true, .apply = apply_drop};

extern const TreatmentKind fadvise_treatment;
const TreatmentKind fadvise_treatment{
    .capability = {.name = "fadvise"}, .empties_caches = true, .apply = apply_fadvise};

}  // namespace sonde::treatments
