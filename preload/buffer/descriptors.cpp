// SPDX-License-Identifier: Apache-2.0
// The life of a descriptor: opened, duplicated, closed.
#include "buffer/descriptors.hpp"

#include "buffer/ahead.hpp"
#include "buffer/brief_lives.hpp"
#include "buffer/direct.hpp"
#include "buffer/dividing.hpp"
#include "buffer/files.hpp"
#include "buffer/flushing.hpp"
#include "buffer/node_locks.hpp"
#include "buffer/outside.hpp"
#include "buffer/pages.hpp"
#include "buffer/sharing.hpp"
#include "buffer/state.hpp"
#include "buffer/states.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

namespace sonde::buffer {

namespace {

bool sole_writer(const File& file, const Description& description) noexcept {
    for (const Description* one = file.ends.descriptions; one != nullptr; one = one->next) {
        if (one != &description && one->writes) {
            return false;
        }
    }
    return true;
}

void note_descriptor(int fd) noexcept {
    int most = highest.load(std::memory_order_relaxed);
    while (fd > most && !highest.compare_exchange_weak(most, fd, std::memory_order_relaxed)) {
    }
}

/// For a description that lost the descriptor it was known by, and has others.
void find_other_descriptor(Description& description) noexcept {
    for (int other = 0; other <= highest.load(std::memory_order_relaxed); ++other) {
        if (table[other].load(std::memory_order_relaxed) == &description) {
            description.fd = other;
            return;
        }
    }
}

void remove_description(File& file, Description& description) noexcept {
    Description** at = &file.ends.descriptions;
    while (*at != &description) {
        at = &(*at)->next;
    }
    *at = description.next;
    description.file.store(nullptr, std::memory_order_release);
    state.description_slab.give(&description);
}

bool appends_with(int flags) noexcept {
    return (flags & O_APPEND) != 0 && (flags & O_ACCMODE) != O_RDONLY;
}

bool flags_allow(int flags, const settings::Rule& rule) noexcept {
    return (flags & (O_DIRECT | O_SYNC | O_DSYNC)) == 0 && (rule.append_own || !appends_with(flags));
}

/// Some append and some do not: what is held then has no one place in the file.
bool mixes(const File& file, int flags) noexcept {
    for (const Description* one = file.ends.descriptions; one != nullptr; one = one->next) {
        if (one->writes && (flags & O_ACCMODE) != O_RDONLY && one->appends != appends_with(flags)) {
            return true;
        }
    }
    return false;
}

/// The kernel gave out this number anew: whoever had it was closed behind our back, and nothing may be done with it.
void forget_stale(int fd) noexcept {
    system::Hold hold(state.files_lock);
    Description* description = nullptr;
    File* file = locked_file(fd, description);
    if (file == nullptr) {
        return;
    }
    close_gate(*file);
    drop_all(*file);
    if (file->mode.load(std::memory_order_relaxed) == Mode::Active) {
        keep_error(*file, EIO);
    }
    file->mode.store(Mode::Through, std::memory_order_seq_cst);
    file->why_through = "a descriptor of it was closed where it could not be seen";
    open_gate(*file);
    table[fd].store(nullptr, std::memory_order_release);
    const bool last = --description->references == 0;
    if (last) {
        remove_description(*file, *description);
    } else if (description->fd == fd) {
        find_other_descriptor(*description);
    }
    choose_descriptors(*file);
    if (file->ends.descriptions == nullptr) {
        unmake_file(*file);
    } else {
        file->lock.unlock();
    }
}

/// Joins a new description to its file, both locked.
void join(File& file, Description& made, int fd, int flags, bool just_opened) noexcept {
    made.fd = fd;
    made.references = 1;
    made.offset =
        (flags & O_APPEND) != 0 || !just_opened ? raw::call(SYS_lseek, fd, 0, SEEK_CUR) : 0;  // fopen() goes to the end
    made.reads = (flags & O_ACCMODE) != O_WRONLY;
    made.writes = (flags & O_ACCMODE) != O_RDONLY;
    made.appends = appends_with(flags);
    made.offset_busy = false;
    if (made.appends && !file.appended.all && file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        file.appended.landed = size_below(fd);
        file.size = std::max(file.size, file.appended.landed);
    }
    made.error_seen = file.errors.count;
    made.stream = {};
    made.next = file.ends.descriptions;
    file.ends.descriptions = &made;
    made.file.store(&file, std::memory_order_release);
    choose_descriptors(file);
    fit_pages(file);
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        if (file.rule->direct && !file.locked_in_parts) {  // opening takes a close, and that would take the locks
            add_direct(file, fd, made.reads, made.writes && !made.appends);
        }
        file.write_through = made.writes && !file.space_seen ? space_is_low(file) : file.write_through;
    }
    file.space_seen = false;
    note_descriptor(fd);
    table[fd].store(&made, std::memory_order_release);
}

bool counts(const settings::Settings& settings, const settings::Rule& rule, bool by_mpi) noexcept {
    return !settings.promised_only || rule.promised() || (by_mpi && rule.mpi_disjoint);
}

}  // namespace

settings::Rule* rule_of(settings::Settings& settings, int fd, const char* path, char (&absolute)[1024]) noexcept {
    const DescriptorName name(fd);
    const long length =
        raw::call(SYS_readlinkat, AT_FDCWD, raw::number(name.text), raw::number(absolute), sizeof(absolute) - 1);
    absolute[length > 0 ? length : 0] = 0;
    return settings::rule_for(settings, path, absolute);
}

void see(Seen& seen, settings::Settings& settings, int fd, const char* path) noexcept {
    if (!seen.asked) {
        seen.asked = true;
        // The kernel writes it. NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
        seen.regular = raw::call(SYS_fstat, fd, raw::number(&seen.status)) == 0 && S_ISREG(seen.status.st_mode);
        seen.absolute[0] = 0;
        settings::Rule* const brief =
            seen.regular && seen.by_the_program && path[0] != 0 ? left_alone_by_name(path) : nullptr;
        seen.brief = brief != nullptr;
        seen.rule = seen.brief ? brief : seen.regular ? rule_of(settings, fd, path, seen.absolute) : nullptr;
    }
}

void adopt(int fd, int flags, const char* path, const char* reason, const OpenedByMpi* mpi, Seen* given) noexcept {
    const system::Critical critical;
    if (in_table(fd)) {
        forget_stale(fd);
    }
    const bool retired = state.retired.load(std::memory_order_relaxed) || state.ended.load(std::memory_order_relaxed);
    const bool nothing = retired || state.settings == nullptr || state.settings->count == 0 ||
                         (state.settings->promised_only && !state.settings->any_promised());
    if (state.settings == nullptr || (nothing && !any()) || (flags & O_PATH) != 0 || (flags & O_TMPFILE) == O_TMPFILE ||
        static_cast<unsigned>(fd) >= most_descriptors) {
        return;
    }
    Seen own;
    Seen& seen = given != nullptr ? *given : own;
    see(seen, *state.settings, fd, path);
    if (!seen.regular) {
        return;
    }
    settings::Rule* rule = retired ? nullptr : seen.rule;
    if (rule != nullptr && !counts(*state.settings, *rule, mpi != nullptr)) {
        rule = nullptr;
    }
    if (rule == nullptr && !any()) {
        state.strangers.store(true, std::memory_order_relaxed);
        return;
    }
    system::Hold hold(state.files_lock);
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    File* file =
        known_or_new_file(fd, seen.status, rule, seen.absolute[0] == '/' ? seen.absolute : path, !writes, seen.brief);
    if (file == nullptr) {
        return;
    }
    const bool is_new = file->ends.descriptions == nullptr;
    if (is_new && seen.by_the_program && !seen.brief && path[0] != 0) {
        note_name(*file, path);
    }
    reason = reason == nullptr && mpi != nullptr ? unfit(*mpi, flags, *file->rule) : reason;
    // Ranks may also open one file each for itself (MPI_COMM_SELF).
    if (mpi != nullptr && reason == nullptr && writes && file->rule->mpi_disjoint) {
        share(*file, *mpi);
    } else if (file->shared) {
        through_for_good(*file, why_opened_again);
    }
    Description* made = state.description_slab.take();
    if (made == nullptr || reason != nullptr || !flags_allow(flags, *file->rule) || fd <= 2) {
        // Known all the same: while this descriptor is open no other one of the file may be buffered.
        const char* usual = fd <= 2 ? "a standard stream" : "opened with O_APPEND, O_DIRECT or O_SYNC";
        through_for_good(*file, made == nullptr ? "no memory" : reason != nullptr ? reason : usual);
    }
    if (mixes(*file, flags)) {
        through_for_good(*file, "open for writing with O_APPEND and without");
    }
    // Ranks that share a file do not mind each other, only those who are not among them.
    const bool only_one = !file->shared && (writes || file->ends.writer >= 0);
    if (file->mode.load(std::memory_order_relaxed) == Mode::Active &&
        !claim(*file, only_one, !(is_new && seen.brief))) {
        through_for_good(*file, "another process on this node uses it too");
    }
    if (is_new && seen.brief) {  // known, and claimed, as any other: only not buffered
        through_for_good(*file, why_brief);
    }
    if (made != nullptr) {
        file->inherited = path[0] == 0;
        join(*file, *made, fd, flags, mpi == nullptr);
    }
    file->lock.unlock();
}

namespace {

/// Nothing of a description that goes away may stay here. The gate is open again afterwards.
void hand_over_last(File& file, Description& description, int fd, bool last) noexcept {
    close_gate(file);
    flush_file(file);
    if (last && description.writes && file.dirty.first != nullptr && sole_writer(file, description)) {
        drop_all(file);  // storage refused it, the program is told, and nobody can write it any more
        struct stat now {};
        file.size = raw::call(SYS_fstat, fd, raw::number(&now)) == 0 ? now.st_size : file.size;
    }
    if (!last) {
        raw::call(SYS_lseek, fd, description.offset, SEEK_SET);
    }
    open_gate(file);
}

/// After the last close of a file, which is locked, as is the table of files.
void end_file(File& file, int fd) noexcept {
    if (keep_for_reopening(file, fd)) {
        file.lock.unlock();
        return;
    }
    constexpr int most_waits = 1000;  // what a handler of the program left by longjmp never comes back
    for (int waits = 0; file.passing.load(std::memory_order_seq_cst) > 0 && waits < most_waits; ++waits) {
        file.changed.wait(file.lock, 1'000'000);
    }
    unmake_file(file);
}

}  // namespace

int detach(int fd) noexcept {
    const system::Critical critical;
    if (!in_table(fd)) {
        return 0;
    }
    Description* description = nullptr;
    File* file = locked_file(fd, description);
    if (file != nullptr) {  // the long part, while others may open and close
        flush_file(*file);
        file->lock.unlock();
    }
    // The table of files first: the last close takes the file out of it.
    system::Hold hold(state.files_lock);
    file = locked_file(fd, description);
    if (file == nullptr) {
        return 0;
    }
    const bool last = description->references == 1;
    int error = 0;
    if (file->mode.load(std::memory_order_relaxed) == Mode::Active) {
        hand_over_last(*file, *description, fd, last);
    }
    take_error(*file, *description, error);
    table[fd].store(nullptr, std::memory_order_release);
    --description->references;
    if (last) {
        remove_description(*file, *description);
    } else if (description->fd == fd) {
        find_other_descriptor(*description);
    }
    choose_descriptors(*file);
    file->changed.tell();
    if (file->ends.descriptions == nullptr) {
        end_file(*file, fd);
    } else {
        file->lock.unlock();
    }
    return error;
}

void duplicated(int fd, int made) noexcept {
    const system::Critical critical;
    if (static_cast<unsigned>(made) >= most_descriptors || made < 3) {
        let_go(fd, "duplicated to a standard stream");
        if (made < 0 || made >= most_descriptors) {
            return;
        }
    }
    Description* description = nullptr;
    File* file = locked_file(fd, description);
    if (file == nullptr) {
        return;
    }
    ++description->references;
    note_descriptor(made);
    table[made].store(description, std::memory_order_release);
    file->lock.unlock();
}

void let_go(int fd, const char* reason) noexcept {
    const system::Critical critical;
    if (!in_table(fd)) {
        return;
    }
    Description* description = nullptr;
    if (File* file = locked_file(fd, description)) {
        through_for_good(*file, reason);
        file->lock.unlock();
    }
}

void let_go_of(dev_t device, ino_t inode, const char* reason) noexcept {
    const system::Critical critical;
    if (File* file = find_file(device, inode)) {
        through_for_good(*file, reason);
        file->lock.unlock();
    }
}

void note_lock(int fd) noexcept {
    const system::Critical critical;
    Description* description = in_table(fd) ? table[fd].load(std::memory_order_acquire) : nullptr;
    const File* seen = description != nullptr ? description->file.load(std::memory_order_acquire) : nullptr;
    if (seen == nullptr || seen->locked_in_parts.load(std::memory_order_relaxed)) {
        return;  // databases lock at each step: the first time is enough
    }
    if (File* file = locked_file(fd, description)) {
        file->locked_in_parts = true;
        file->lock.unlock();
    }
}

void lock_taken(int fd) noexcept {
    const system::Critical critical;
    const int kept = errno;
    Description* description = nullptr;
    if (File* file = is_active(fd) ? locked_file(fd, description) : nullptr) {
        if (file->mode.load(std::memory_order_relaxed) == Mode::Active) {
            ++file->statistics.given_up;
            if (count_lock(*file)) {
                sleep_for(*file, static_cast<std::int32_t>(file->payoff.dormant_calls));
            } else {
                forget_what_was_read(*file);
                heed_growth(*file);
            }
        }
        file->lock.unlock();
    }
    errno = kept;
}

void flags_change(int fd, int flags) noexcept {
    const system::Critical critical;
    Description* description = nullptr;
    if (File* file = in_table(fd) ? locked_file(fd, description) : nullptr) {
        const int access = description->writes ? O_RDWR : O_RDONLY;
        const bool changes = description->writes && description->appends != ((flags & O_APPEND) != 0);
        if (changes || !flags_allow((flags & ~O_ACCMODE) | access, *file->rule)) {
            through_for_good(*file, "O_APPEND, O_DIRECT or O_SYNC is set or taken away");
        }
        file->lock.unlock();
    }
}

}  // namespace sonde::buffer
