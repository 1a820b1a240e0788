// SPDX-License-Identifier: Apache-2.0
// Knows every kind of treatment, what it needs, and how to tell whether it had its effect.
#include "treatments/treatments.hpp"

#include "records/environment.hpp"
#include "treatments/background.hpp"
#include "treatments/child_command.hpp"
#include "treatments/memory_hog.hpp"
#include "treatments/remount.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace sonde::treatments {

namespace {

using Outcome = TreatmentResult::Outcome;
using Kind = plan::Treatment::Kind;

std::string percent(double share) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", share * 100);
    return text;
}

TreatmentResult said(Outcome outcome, std::string text) {
    TreatmentResult result;
    result.outcome = outcome;
    result.text = std::move(text);
    return result;
}

/// errno of a write-back of the file system that holds `directory`, 0 = done, -1 = stopped.
int sync_file_system(const std::string& directory, const StopAsked& stop) {
    const auto error = std::make_shared<int>(0);
    const bool finished = run_or_leave(
        [error, directory] {
            const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (descriptor < 0) {
                ::sync();  // everything, which includes what was meant
                return;
            }
            *error = ::syncfs(descriptor) == 0 ? 0 : errno;
            ::close(descriptor);
        },
        stop);
    return finished ? *error : -1;
}

TreatmentResult apply_sync(const std::string& directory, const StopAsked& stop) {
    const int error = sync_file_system(directory, stop);
    if (error < 0) {
        return said(Outcome::failed, "Stopped while the file system was being synced.");
    }
    if (error > 0) {
        return said(Outcome::failed, "The file system at " + directory + " could not be synced: " +
                                         std::strerror(error) + "; data may be lost, look into the kernel's log.");
    }
    return said(Outcome::done, "Wrote all dirty data of the file system back.");
}

/// errno of dropping everybody's clean pages, inodes and directory entries, -1 = stopped.
int drop_all_caches(const StopAsked& stop) {
    const auto error = std::make_shared<int>(0);
    const bool finished = run_or_leave(
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

/// Shared with the thread that does it, which may outlive its caller.
struct Advised {
    std::vector<std::string> files;
    std::atomic<bool> leave{false};
    std::atomic<std::size_t> done{0};
    std::size_t failed = 0;
    int error = 0;     ///< the first
    std::string path;  ///< where it happened
};

/// Gives up the pages of one file. `durable`: after fdatasync, which some file systems need before they let go, but
/// which costs a flush of the device for every file; otherwise its dirty pages are only handed to the device.
int advise_file(const std::string& path, bool durable) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return errno;
    }
    // Only clean pages can be given up. That sync_file_range is not supported everywhere is found out by the caller:
    // the pages are still there.
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

void advise_all(Advised& all, bool durable) {
    all.failed = 0;
    all.done = 0;
    for (const std::string& path : all.files) {
        if (all.leave.load()) {
            return;
        }
        const int error = advise_file(path, durable);
        if (error != 0) {
            all.path = all.failed == 0 ? path : all.path;
            all.error = all.failed == 0 ? error : all.error;
            ++all.failed;
        }
        ++all.done;
    }
}

TreatmentResult apply_fadvise(const std::vector<std::string>& files, const StopAsked& stop) {
    if (files.empty()) {
        return said(Outcome::skipped, "There are no data files yet whose pages could be given up.");
    }
    const auto all = std::make_shared<Advised>();
    all->files = files;
    const auto give_up = [all] {
        advise_all(*all, false);
        if (!all->leave.load() && (all->failed > 0 || measure_residency(all->files).resident > 0)) {
            advise_all(*all, true);
        }
    };
    if (!run_or_leave(give_up, stop)) {
        all->leave = true;
        return said(Outcome::failed, "Stopped after the pages of " + std::to_string(all->done.load()) + " files.");
    }
    if (all->failed > 0) {
        return said(Outcome::failed, "The pages of " + std::to_string(all->failed) + " of " +
                                         std::to_string(files.size()) + " files could not be given up; first " +
                                         all->path + ": " + std::strerror(all->error) + ".");
    }
    return said(Outcome::done, "Gave up the cached pages of " + std::to_string(files.size()) + " files (fadvise).");
}

TreatmentResult apply_drop(const std::string& directory, const std::vector<std::string>& files, const StopAsked& stop) {
    // Dirty pages survive a drop.
    TreatmentResult synced = apply_sync(directory, stop);
    if (synced.outcome != Outcome::done) {
        return synced;
    }
    const int error = drop_all_caches(stop);
    if (error < 0) {
        return said(Outcome::failed, "Stopped while the page cache was being dropped.");
    }
    if (error == 0) {
        return said(Outcome::done, "Dropped the page cache of this node.");
    }
    TreatmentResult instead = apply_fadvise(files, stop);
    instead.text = std::string("Dropping the whole page cache needs root (") + std::strerror(error) +
                   "), so only this run's files were asked for. " + instead.text;
    return instead;
}

TreatmentResult apply_remount(const plan::Treatment& treatment, const std::string& directory, const StopAsked& stop) {
    if (!treatment.command.empty()) {
        const CommandResult result = run_shell(treatment.command, stop);
        return result.ok() ? said(Outcome::done, "Remounted by the given command.")
                           : said(Outcome::failed, "The command for remounting failed: " + result.reason() + ".");
    }
    const TreatmentResult synced = apply_sync(directory, stop);  // else the umount would take that time unstoppably
    if (synced.outcome != Outcome::done) {
        return synced;
    }
    const RemountResult result = remount(directory);
    return said(result.done ? Outcome::done : Outcome::failed, result.text);
}

/// What keeps pages in memory, in words.
std::string why_resident(const Residency& after, const std::string& directory) {
    const records::FileSystem system = records::describe_file_system(directory);
    if (system.memory_backed) {
        return system.type + " keeps its files in memory, so they cannot be dropped; choose a target on storage.";
    }
    if (after.dirty > 0) {
        return std::to_string(after.dirty) +
               " pages were not yet written back; somebody is still writing, or a `sync` treatment is needed before.";
    }
    return "pages that a process has mapped or locked stay; end what still uses the files, or raise max_resident.";
}

/// Measures around a cache treatment and judges it by its effect, not by its exit status.
template <typename Treat>
TreatmentResult judged(const plan::Treatment& treatment, const std::string& directory,
                       const std::vector<std::string>& files, Treat treat) {
    const Residency before = measure_residency(files);
    TreatmentResult result = treat();
    result.before = before;
    result.after = measure_residency(files);
    if (!result.after.known) {
        return result;
    }
    const double share = result.after.share();
    if (share > treatment.max_resident) {
        result.outcome = Outcome::failed;
        result.text += " " + percent(share) +
                       " of the data is still in the page cache (allowed: " + percent(treatment.max_resident) +
                       "): " + why_resident(result.after, directory);
    } else {
        result.text += " Data in the page cache: " + percent(before.share()) + " before, " + percent(share) + " after.";
    }
    return result;
}

TreatmentResult apply_hog(const plan::Treatment& treatment, const StopAsked& stop) {
    HeldMemory memory = hold_memory(treatment.fraction, stop);
    if (memory.wanted == 0) {
        return said(Outcome::skipped, "No memory was to be held: set `fraction` above 0.");
    }
    TreatmentResult result;
    result.held = std::move(memory.held);
    result.text = "Holds " + gibibytes(memory.bytes) + " of memory" + (memory.locked ? ", locked." : ".");
    if (!memory.locked && memory.bytes > 0) {
        result.text += " It is not locked and could be swapped out (raise `ulimit -l`).";
    }
    if (memory.stopped) {
        result.outcome = Outcome::failed;
        result.text += " Stopped before it was all.";
    } else if (!memory.trouble.empty()) {
        result.outcome = Outcome::failed;
        result.text += " " + gibibytes(memory.wanted) + " were wanted, but " + memory.trouble + ".";
    }
    return result;
}

TreatmentResult apply_sleep(const plan::Treatment& treatment, const StopAsked& stop) {
    const bool whole = sleep_or_stop(static_cast<double>(treatment.time) / 1e9, stop);
    return whole ? said(Outcome::done, "Waited.") : said(Outcome::failed, "Stopped while waiting.");
}

TreatmentResult apply_command(const plan::Treatment& treatment, const StopAsked& stop) {
    const CommandResult result = run_shell(treatment.command, stop);
    if (result.ok()) {
        return said(Outcome::done, "The command succeeded.");
    }
    return said(Outcome::failed, "The command `" + treatment.command + "` failed: " + result.reason() + ".");
}

TreatmentResult apply_kind(const plan::Treatment& treatment, const std::string& directory,
                           const std::vector<std::string>& files, const StopAsked& stop) {
    switch (treatment.kind) {
        case Kind::sync:
            return apply_sync(directory, stop);
        case Kind::drop_page_cache:
            return judged(treatment, directory, files, [&] { return apply_drop(directory, files, stop); });
        case Kind::fadvise:
            return judged(treatment, directory, files, [&] { return apply_fadvise(files, stop); });
        case Kind::remount:
            return judged(treatment, directory, files, [&] { return apply_remount(treatment, directory, stop); });
        case Kind::memory_hog:
            return apply_hog(treatment, stop);
        case Kind::sleep:
            return apply_sleep(treatment, stop);
        case Kind::command:
            return apply_command(treatment, stop);
    }
    return said(Outcome::skipped, "This engine does not know the treatment.");
}

}  // namespace

TreatmentResult apply(const plan::Treatment& treatment, const std::string& directory,
                      const std::vector<std::string>& files, const StopAsked& stop) {
    const auto begin = std::chrono::steady_clock::now();
    TreatmentResult result;
    try {
        result = apply_kind(treatment, directory, files, stop);
    } catch (const std::exception& failure) {  // no thread, no memory: a failed treatment, not a failed run
        result = said(TreatmentResult::Outcome::failed,
                      std::string("The treatment could not be carried out: ") + failure.what() + ".");
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

std::string name(plan::Treatment::Kind kind) {
    switch (kind) {
        case Kind::sync:
            return "sync";
        case Kind::drop_page_cache:
            return "drop_page_cache";
        case Kind::fadvise:
            return "fadvise";
        case Kind::remount:
            return "remount";
        case Kind::memory_hog:
            return "memory_hog";
        case Kind::sleep:
            return "sleep";
        case Kind::command:
            return "command";
    }
    return "unknown";
}

}  // namespace sonde::treatments
