// SPDX-License-Identifier: Apache-2.0
// Follows each descriptor from open() through dup() to close().
#include "files/descriptors.hpp"

#include "cache/pages.hpp"
#include "cache/profitability.hpp"
#include "cache/writeback.hpp"
#include "files/direct_descriptors.hpp"
#include "files/file_events.hpp"
#include "files/lifecycle.hpp"
#include "files/lost_errors.hpp"
#include "guards/leases.hpp"
#include "model/candidate_table.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "model/unlocked_scope.hpp"
#include "modes/modes.hpp"
#include "modes/mpi_sharing.hpp"
#include "settings/glob.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sonde::buffer {

namespace {

bool is_only_writer(const File& file, const Description& description) noexcept {
    for (const Description* other = file.descriptors.descriptions; other != nullptr; other = other->next) {
        if (other != &description && other->writes) {
            return false;
        }
    }
    return true;
}

void raise_highest_descriptor(int fd) noexcept {
    int previous_highest = highest.load(std::memory_order_relaxed);
    while (fd > previous_highest && !highest.compare_exchange_weak(previous_highest, fd, std::memory_order_relaxed)) {
    }
}

/// Chooses another descriptor for a description whose known descriptor was closed.
void find_other_descriptor(Description& description) noexcept {
    for (int other = 0; other <= highest.load(std::memory_order_relaxed); ++other) {
        if (table[other].load(std::memory_order_relaxed) == &description) {
            description.fd = other;
            return;
        }
    }
}

void remove_description(File& file, Description& description) noexcept {
    Description** link = &file.descriptors.descriptions;
    while (*link != &description) {
        link = &(*link)->next;
    }
    *link = description.next;
    description.file.store(nullptr, std::memory_order_release);
    state.description_slab.deallocate(&description);
}

bool do_flags_append(int flags) noexcept {
    return (flags & O_APPEND) != 0 && (flags & O_ACCMODE) != O_RDONLY;
}

bool do_flags_allow_buffering(int flags) noexcept {
    return (flags & (O_DIRECT | O_SYNC | O_DSYNC)) == 0;
}

/// Returns whether some descriptions append and others do not: then buffered data has no certain offset.
bool mixes_append_and_write(const File& file, int flags) noexcept {
    for (const Description* other = file.descriptors.descriptions; other != nullptr; other = other->next) {
        if (other->writes && (flags & O_ACCMODE) != O_RDONLY && other->appends != do_flags_append(flags)) {
            return true;
        }
    }
    return false;
}

}  // namespace

void forget_stale_descriptor(int fd) noexcept {
    system::LockGuard lock_guard(state.files_lock);
    Description* description = nullptr;
    File* file = lock_file_of_descriptor(fd, description);
    if (file == nullptr) {
        return;
    }
    close_gate(*file);
    const bool loses_data = file->dirty.first != nullptr;
    drop_all_pages(*file);
    if (file->lease.fd == fd) {
        forget_lease(*file);
    }
    if (file->mode.load(std::memory_order_relaxed) == Mode::Active) {
        store_error(*file, EIO);
    }
    file->mode.store(Mode::Released, std::memory_order_seq_cst);
    file->release_reason = "a descriptor of it was closed where it could not be seen";
    open_gate(*file);
    table[fd].store(nullptr, std::memory_order_release);
    const bool last = --description->references == 0;
    if (last) {
        remove_description(*file, *description);
    } else if (description->fd == fd) {
        find_other_descriptor(*description);
    }
    choose_file_descriptors(*file);
    if (file->descriptors.descriptions == nullptr) {
        if (loses_data) {
            report_lost_error(*file, EIO);
        }
        destroy_file(*file);
    } else {
        file->lock.unlock();
    }
}

namespace {

/// Adds a new description to its file. Requires the lock of the file.
void add_description(File& file, Description& description, const OpenedDescriptor& opening) noexcept {
    const int fd = opening.fd;
    const int flags = opening.flags;
    description.fd = fd;
    description.references = 1;
    description.offset = (flags & O_APPEND) != 0 || !opening.just_opened || opening.mpi != nullptr
                             ? raw::call(SYS_lseek, fd, 0, SEEK_CUR)
                             : 0;  // fopen() goes to the end
    description.reads = (flags & O_ACCMODE) != O_WRONLY;
    description.writes = (flags & O_ACCMODE) != O_RDONLY;
    description.appends = do_flags_append(flags);
    description.is_offset_busy = false;
    if (description.appends && !file.append.only_appends && file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        file.append.kernel_size = read_size_from_kernel(fd);
        file.size = std::max(file.size, file.append.kernel_size);
    }
    if (file.guard == Guard::Lease && (description.writes || file.descriptors.write_fd >= 0)) {
        suspend_buffering(file);  // another open() of this process takes the lease away
    }
    description.error_seen = file.errors.count;
    description.stream = {};
    description.next = file.descriptors.descriptions;
    file.descriptors.descriptions = &description;
    description.file.store(&file, std::memory_order_release);
    choose_file_descriptors(file);
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        if (file.rule->direct && !file.has_posix_locks) {  // opening takes a close, and that would take the locks
            open_direct_descriptors_of(file, fd, description.reads, description.writes && !description.appends);
        }
    }
    raise_highest_descriptor(fd);
    table[fd].store(&description, std::memory_order_release);
}

}  // namespace

namespace {

void read_absolute_path(int fd, char (&absolute)[1024]) noexcept {
    const DescriptorName name(fd);
    const long length = raw::call(SYS_readlinkat, AT_FDCWD, raw::pointer_to_number(name.text),
                                  raw::pointer_to_number(absolute), sizeof(absolute) - 1);
    absolute[length > 0 ? length : 0] = 0;
}

}  // namespace

settings::Rule* find_rule_of_descriptor(settings::Settings& settings, int fd, const char* path,
                                        char (&absolute)[1024]) noexcept {
    read_absolute_path(fd, absolute);
    return settings::find_rule_by_name(settings, path, absolute);
}

namespace {

/// Returns the rule for an opened file and stores its absolute path ("" if the kernel names none).
settings::Rule* find_rule(const OpenedDescriptor& opening, char (&absolute)[1024]) noexcept {
    if (opening.rule == nullptr) {
        settings::Rule* const rule = find_rule_of_descriptor(*state.settings, opening.fd, opening.path, absolute);
        return opening.only_if_known ? nullptr : rule;
    }
    read_absolute_path(opening.fd, absolute);
    const bool is_system = settings::is_system_path(absolute) && opening.rule->pattern[0] != '/';
    return is_system ? nullptr : opening.rule;
}

/// Returns the reason why this descriptor forbids buffering of the file, or nullptr.
const char* find_objection(const OpenedDescriptor& opening, const File& file, const Description* description,
                           const char* path) noexcept {
    if (opening.reason != nullptr) {
        return opening.reason;
    }
    if (opening.mpi != nullptr) {
        if (const char* const reason = describe_mpi_objection(*opening.mpi, opening.flags, *file.rule)) {
            return reason;
        }
    }
    if (description == nullptr) {
        return "no memory";
    }
    if (opening.fd <= 2) {
        return "a standard stream";
    }
    if (std::strncmp(path, "/memfd:", 7) == 0) {
        return "a file in memory (memfd)";
    }
    if (!do_flags_allow_buffering(opening.flags)) {
        return "opened with O_DIRECT or O_SYNC";
    }
    return mixes_append_and_write(file, opening.flags) ? "open for writing with O_APPEND and without" : nullptr;
}

bool is_unchanged(const struct stat& before, int fd) noexcept {
    struct stat now {};
    return raw::call(SYS_fstat, fd, raw::pointer_to_number(&now)) == 0 && now.st_size == before.st_size &&
           now.st_mtim.tv_sec == before.st_mtim.tv_sec && now.st_mtim.tv_nsec == before.st_mtim.tv_nsec &&
           now.st_ctim.tv_sec == before.st_ctim.tv_sec && now.st_ctim.tv_nsec == before.st_ctim.tv_nsec;
}

/// Buffers the file only if a guard protects it from other processes. Requires the lock of the file.
void guard_or_release(File& file, const struct stat& status, int fd) noexcept {
    if (file.mode.load(std::memory_order_relaxed) == Mode::Suspended && !file.is_retry_planned) {
        resume_buffering(file);
    } else if (file.mode.load(std::memory_order_relaxed) == Mode::Active && file.guard == Guard::None) {
        if (const char* const reason = establish_guard(file)) {
            release_file(file, reason);
        } else if (!is_unchanged(status, fd)) {  // before the guard was there
            drop_all_pages(file);
            update_size_from_kernel(file);
        }
    }
}

}  // namespace

void adopt_descriptor(const OpenedDescriptor& opening) noexcept {
    const system::Critical critical;
    const int fd = opening.fd;
    if (is_registered_descriptor(fd)) {
        forget_stale_descriptor(fd);
    }
    const bool ended =
        state.is_disabled.load(std::memory_order_relaxed) || state.has_ended.load(std::memory_order_relaxed);
    struct stat status {};
    if (state.settings == nullptr || (ended && !has_registered_descriptors()) || (opening.flags & O_PATH) != 0 ||
        (opening.flags & O_TMPFILE) == O_TMPFILE || static_cast<unsigned>(fd) >= max_descriptors ||
        raw::call(SYS_fstat, fd, raw::pointer_to_number(&status)) != 0 || !S_ISREG(status.st_mode)) {
        return;
    }
    char absolute[1024];
    settings::Rule* const rule = find_rule(opening, absolute);
    if (rule == nullptr && !has_registered_descriptors()) {
        state.has_uncovered_files.store(true, std::memory_order_relaxed);
        return;
    }
    const char* const path = absolute[0] == '/' ? absolute : opening.path;
    const bool writes = (opening.flags & O_ACCMODE) != O_RDONLY;
    system::LockGuard lock_guard(state.files_lock);
    File* file = find_or_create_file(fd, status, ended ? nullptr : rule, path, !writes);
    if (file == nullptr) {
        return;
    }
    Description* description = state.description_slab.allocate();
    const char* const reason = find_objection(opening, *file, description, path);
    // A rank may also open a file for itself alone (MPI_COMM_SELF).
    if (opening.mpi != nullptr && reason == nullptr && writes && file->rule->mpi_disjoint) {
        share_among_ranks(*file, *opening.mpi);
    } else if (file->is_shared) {
        release_file(*file, why_opened_again);
    }
    if (reason != nullptr) {
        // The file is registered nevertheless: while this descriptor is open, no other one of the file may be buffered.
        release_file(*file, reason);
    }
    if (description != nullptr) {
        file->is_inherited = opening.path[0] == 0 && opening.rule == nullptr;
        add_description(*file, *description, opening);
        guard_or_release(*file, status, fd);
    }
    file->lock.unlock();
}

namespace {

/// Writes the dirty pages before a description is removed. The gate is open again afterwards.
void flush_before_detaching(File& file, Description& description, int fd, bool last) noexcept {
    close_gate(file);
    flush_file(file);
    if (last && description.writes && file.dirty.first != nullptr && is_only_writer(file, description)) {
        drop_all_pages(
            file);  // storage refused the data, the program gets the error, and the pages cannot be written any more
        struct stat now {};
        file.size = raw::call(SYS_fstat, fd, raw::pointer_to_number(&now)) == 0 ? now.st_size : file.size;
    }
    if (!last) {
        raw::call(SYS_lseek, fd, description.offset, SEEK_SET);
    }
    open_gate(file);
}

/// Destroys a file after its last close. Requires the locks of the file and of the table of files.
void destroy_file_after_close(File& file) noexcept {
    constexpr int max_waits = 1000;  // what a handler of the program left by longjmp never comes back
    for (int waits = 0; file.pass_through_calls.load(std::memory_order_seq_cst) > 0 && waits < max_waits; ++waits) {
        file.change_condition.wait(file.lock, 1'000'000);
    }
    destroy_file(file);
}

}  // namespace

int detach_descriptor(int fd) noexcept {
    const system::Critical critical;
    if (!is_registered_descriptor(fd)) {
        return 0;
    }
    Description* description = nullptr;
    File* file = lock_file_of_descriptor(fd, description);
    if (file != nullptr) {  // the long part, while others may open and close
        flush_file(*file);
        file->lock.unlock();
    }
    // The table of files is locked first, because the last close removes the file from it.
    system::LockGuard lock_guard(state.files_lock);
    file = lock_file_of_descriptor(fd, description);
    if (file == nullptr) {
        return 0;
    }
    const bool last = description->references == 1;
    int error = 0;
    if (file->mode.load(std::memory_order_relaxed) == Mode::Active) {
        flush_before_detaching(*file, *description, fd, last);
    }
    consume_error(*file, *description, error);
    const bool held_lease = file->lease.fd == fd;
    if (held_lease && last) {
        description->next == nullptr && file->descriptors.descriptions == description ? release_lease(*file)
                                                                                      : suspend_buffering(*file);
    }
    table[fd].store(nullptr, std::memory_order_release);
    --description->references;
    if (last) {
        remove_description(*file, *description);
    } else if (description->fd == fd) {
        find_other_descriptor(*description);
        file->lease.fd = held_lease ? description->fd : file->lease.fd;
    }
    choose_file_descriptors(*file);
    if (held_lease && last && file->descriptors.descriptions != nullptr) {
        resume_buffering(*file);  // with a lease on another descriptor
    }
    file->change_condition.notify_all();
    if (file->descriptors.descriptions == nullptr) {
        destroy_file_after_close(*file);
    } else {
        file->lock.unlock();
    }
    return error;
}

void register_duplicate(int fd, int duplicate) noexcept {
    const system::Critical critical;
    forget_candidate(duplicate);
    if (static_cast<unsigned>(duplicate) >= max_descriptors || duplicate < 3) {
        release_file_of_descriptor(fd, "duplicated to a standard stream");
        if (duplicate < 0 || duplicate >= max_descriptors) {
            return;
        }
    }
    Description* description = nullptr;
    File* file = lock_file_of_descriptor(fd, description);
    if (file == nullptr) {
        return;
    }
    ++description->references;
    raise_highest_descriptor(duplicate);
    table[duplicate].store(description, std::memory_order_release);
    file->lock.unlock();
}

void apply_flag_change(int fd, int flags) noexcept {
    const system::Critical critical;
    Description* description = nullptr;
    if (File* file = is_registered_descriptor(fd) ? lock_file_of_descriptor(fd, description) : nullptr) {
        const int access = description->writes ? O_RDWR : O_RDONLY;
        const bool changes = description->writes && description->appends != ((flags & O_APPEND) != 0);
        if (changes || !do_flags_allow_buffering((flags & ~O_ACCMODE) | access)) {
            release_file(*file, "O_APPEND, O_DIRECT or O_SYNC is set or taken away");
        }
        file->lock.unlock();
    }
}

}  // namespace sonde::buffer
