// SPDX-License-Identifier: Apache-2.0
// Tests that nothing of a file remains for the next use of its object, inode or descriptor number.
#include "dirty_file.hpp"

#include "cache/pages.hpp"
#include "cache/writeback.hpp"
#include "files/lifecycle.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"
#include "system/high_descriptor.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

using namespace under_test;
using buffer::File;
using buffer::Mode;
using buffer::state;

TEST_CASE("reused_object_keeps_nothing_of_previous_file") {
    use(quiet);
    const Folder folder;
    const int first = open_buffered(folder.path + "/first", O_RDWR | O_CREAT);
    File* const file = &file_of(first);
    const std::uint32_t generation = file->generation;
    const std::uint32_t file_count = buffer::files_known.load();
    file->lock.lock();
    file->active_calls.exclusive_calls = 3;
    file->errors = {.last_errno = 5, .count = 7, .retry_after_ns = 1ULL << 62U};
    file->profitability.speculative_loads_left = 9;
    file->profitability.best_bytes_per_us = 77;
    file->append = {.only_appends = true, .has_foreign_growth = true, .kernel_size = 9};
    file->has_posix_locks = true;
    file->is_inherited = file->has_release_request = file->is_write_through = file->is_shared = true;
    file->mpi_handle = file;
    file->is_retry_planned = true;
    file->is_claimed = true;
    file->lease.is_lost = true;
    file->is_local = true;
    file->last_guard = buffer::Guard::Lease;
    file->space_checked_ns = 12;
    file->watch.switches = 6;
    file->choice.reason = "so";
    file->accepted_since_check = 8;
    file->statistics.seeks = 2;
    file->lock.unlock();
    CHECK(close_buffered(first) == 5);
    CHECK(file->mode.load() == Mode::Unused);
    CHECK(file->inode == 0);
    CHECK(file->device == 0);
    CHECK(file->rule == nullptr);
    CHECK(file->pages.hash_buckets == nullptr);
    CHECK(file->generation == generation + 1);
    CHECK(buffer::files_known.load() == file_count - 1);
    const int second = open_buffered(folder.path + "/second", O_RDWR | O_CREAT);
    REQUIRE(&file_of(second) == file);
    CHECK(file->active_calls.exclusive_calls == 0);
    CHECK((file->errors.last_errno == 0 && file->errors.count == 0 && file->errors.retry_after_ns == 0));
    CHECK((file->profitability.speculative_loads_left == 4 && file->profitability.best_bytes_per_us == 0));
    CHECK_FALSE((file->append.only_appends || file->append.has_foreign_growth || file->append.kernel_size != 0));
    CHECK_FALSE((file->has_posix_locks || file->is_inherited || file->has_release_request || file->is_write_through ||
                 file->is_shared || file->is_retry_planned || file->is_watched));
    CHECK(file->mpi_handle == nullptr);
    CHECK((!file->lease.is_lost && file->lease.fd == -1 && file->space_checked_ns == 0));
    CHECK((file->is_local && file->last_guard == buffer::Guard::NodeTable));  // as of the second file
    CHECK(file->watch.switches == 0);
    CHECK(file->choice.reason == nullptr);
    CHECK(file->release_reason == nullptr);
    CHECK(file->accepted_since_check == 0);
    CHECK(file->statistics.seeks == 0);
    CHECK(file->mode.load() == Mode::Active);
    CHECK(close_buffered(second) == 0);
}

TEST_CASE("unreturned_call_keeps_its_file_object") {
    use(quiet);
    const Folder folder;
    const int first = open_buffered(folder.path + "/first", O_RDWR | O_CREAT);
    const File* const old_file = &file_of(first);
    CHECK_FALSE(buffer::read(first, nullptr, 0, 0).is_done);  // on its way to the kernel, and left by a handler
    CHECK(close_buffered(first) == 0);
    CHECK(old_file->mode.load() == Mode::Unused);
    const int second = open_buffered(folder.path + "/second", O_RDWR | O_CREAT);
    CHECK(&file_of(second) != old_file);
    { const buffer::PassThrough around(second); }
    CHECK(mode_of(second) == Mode::Active);
    CHECK(close_buffered(second) == 0);
}

TEST_CASE("all_direct_descriptors_move_for_program") {
    const Folder folder;
    const std::string path = folder.path + "/data";
    const int probe = open(path.c_str(), O_CREAT | O_RDWR | O_DIRECT, 0644);
    if (probe < 0) {
        MESSAGE("this file system has no O_DIRECT");
        return;
    }
    close(probe);
    use("*:size=4k:count=4:direct,%process:age=600");
    const int fd = open_buffered(path, O_RDWR);
    buffer::FileDescriptors& ends = file_of(fd).descriptors;
    const int in = ends.direct_read_fd, out = ends.direct_write_fd;
    REQUIRE((in >= 0 && out >= 0));
    buffer::move_own_descriptor(in);
    CHECK(ends.direct_read_fd != in);
    CHECK(ends.direct_write_fd == out);
    CHECK(buffer::is_own_descriptor(ends.direct_read_fd));
    CHECK_FALSE(buffer::is_own_descriptor(in));
    CHECK((fcntl(ends.direct_read_fd, F_GETFL) & O_DIRECT) != 0);
    const int moved = ends.direct_read_fd;
    buffer::move_own_descriptor(out);
    CHECK(ends.direct_read_fd == moved);
    CHECK(ends.direct_write_fd != out);
    CHECK(buffer::is_own_descriptor(ends.direct_write_fd));
    close(in);
    close(out);
    // A file with POSIX locks gets no further O_DIRECT descriptor, because closing it would end the locks.
    CHECK(close_buffered(fd) == 0);
    const int reader = open_buffered(path, O_RDONLY);
    CHECK(file_of(reader).descriptors.direct_read_fd >= 0);
    buffer::record_file_lock(reader);
    buffer::record_file_lock(999);
    const int writer = open_buffered(path, O_WRONLY);
    CHECK(file_of(writer).descriptors.direct_write_fd == -1);
    CHECK(in_child([&] {  // nor does the program get that one's number, but what is left after all
        buffer::release_own_descriptor();
        return file_of(reader).descriptors.direct_read_fd >= 0 && state.is_disabled;
    }));
    CHECK(close_buffered(writer) == 0);
    CHECK(close_buffered(reader) == 0);
    const int plain = open_buffered(path, O_RDWR);
    CHECK(in_child([&] {
        return buffer::release_own_descriptor() && file_of(plain).descriptors.direct_read_fd == -1 &&
               file_of(plain).descriptors.direct_write_fd == -1 && !state.is_disabled && mode_of(plain) == Mode::Active;
    }));
    CHECK(close_buffered(plain) == 0);
}

TEST_CASE("adopted_descriptor_starts_at_kernel_offset") {
    use(quiet);
    const Folder folder;
    const std::string path = folder.path + "/data";
    for (const bool by_mpi : {false, true}) {
        const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0644);
        REQUIRE(lseek(fd, 100, SEEK_SET) == 100);
        int handle = 0;
        const buffer::OpenedByMpi mpi{1, &handle};
        buffer::adopt_descriptor({.fd = fd, .flags = O_RDWR, .path = path.c_str(), .mpi = by_mpi ? &mpi : nullptr});
        CHECK(buffer::seek(fd, 0, SEEK_CUR).value == (by_mpi ? 100 : 0));
        CHECK(close_buffered(fd) == 0);
    }
    use("*:size=4k:count=4:alone,%process:age=600");
    REQUIRE(truncate(path.c_str(), 77) == 0);
    const int fd = open(path.c_str(), O_WRONLY | O_APPEND);
    REQUIRE(lseek(fd, 0, SEEK_END) == 77);  // as fopen() does
    buffer::adopt_descriptor({.fd = fd, .flags = O_WRONLY | O_APPEND, .path = path.c_str()});
    CHECK(buffer::seek(fd, 0, SEEK_CUR).value == 77);
    CHECK(close_buffered(fd) == 0);
}

TEST_CASE("later open does not receive an earlier write error") {
    Held one(quiet);
    buffer::store_error(file_of(one.fd), ENOSPC);
    const int later = open_buffered(one.path, O_RDWR);
    CHECK(buffer::flush_descriptor(later) == 0);
    CHECK(buffer::flush_descriptor(one.fd) == ENOSPC);
    buffer::store_error(file_of(one.fd), EIO);
    buffer::store_error(file_of(one.fd), EDQUOT);
    CHECK(buffer::flush_descriptor(later) == EDQUOT);
    CHECK(buffer::flush_descriptor(one.fd) == EDQUOT);
    CHECK(buffer::flush_descriptor(one.fd) == 0);
    CHECK(close_buffered(later) == 0);
}

TEST_CASE("later_flags_end_buffering_as_at_open") {
    const auto after = [](int access, int flags) {
        Held one(quiet);
        const int fd = open_buffered(one.path, access);
        buffer::apply_flag_change(fd, flags);
        const bool active = mode_of(fd) == Mode::Active;
        CHECK(why(fd) == (active ? "" : "O_APPEND, O_DIRECT or O_SYNC is set or taken away"));
        CHECK(close_buffered(fd) == 0);
        return active;
    };
    CHECK(after(O_RDWR, O_NONBLOCK));
    CHECK(after(O_RDONLY, O_APPEND));
    CHECK_FALSE(after(O_WRONLY, O_APPEND));
    CHECK_FALSE(after(O_RDWR, O_APPEND));
    CHECK_FALSE(after(O_RDONLY, O_DIRECT));
    CHECK_FALSE(after(O_RDWR, O_SYNC));
    CHECK_FALSE(after(O_RDWR, O_DSYNC));
    buffer::apply_flag_change(999, O_APPEND);
}

TEST_CASE("descriptors_beyond_table_are_ignored") {
    CHECK_FALSE(buffer::is_registered_descriptor(-1));
    CHECK_FALSE(buffer::is_registered_descriptor(1 << 20));
    CHECK_FALSE(buffer::is_registered_descriptor((1 << 20) - 1));
    Held one(quiet);
    CHECK(buffer::is_registered_descriptor(one.fd));
    CHECK(buffer::get_highest_registered_descriptor() >= one.fd);
    const int high = fcntl(one.fd, F_DUPFD, buffer::get_highest_registered_descriptor() + 10);
    buffer::register_duplicate(one.fd, high);
    CHECK(buffer::get_highest_registered_descriptor() == high);
    CHECK(buffer::is_watched_descriptor(high));
    const int first = one.fd;
    CHECK(close_buffered(first) == 0);
    CHECK(buffer::table[high].load()->fd == high);  // the last that there can be
    CHECK(close_buffered(high) == 0);
    one.fd = open_buffered(one.path, O_RDWR);
    buffer::register_duplicate(one.fd, -1);
    CHECK(why(one.fd) == "duplicated to a standard stream");
}

TEST_CASE("first_number_after_standard_streams_is_ordinary") {
    const int null_device = open("/dev/null", O_RDONLY);  // so that the file is not at 3 itself
    Held one(quiet);
    CHECK(in_child([&] {
        if (one.fd <= 3 || dup2(one.fd, 3) != 3) {
            return false;
        }
        buffer::table[3] = nullptr;
        buffer::register_duplicate(one.fd, 3);
        return mode_of(one.fd) == Mode::Active && buffer::table[3].load() == buffer::table[one.fd].load();
    }));
    CHECK(in_child([&] {
        buffer::register_duplicate(one.fd, 2);
        return mode_of(one.fd) == Mode::Released && buffer::table[2].load() == buffer::table[one.fd].load();
    }));
    CHECK(in_child([&] {
        const int fd = dup2(one.fd, 2);
        buffer::adopt_descriptor({.fd = fd, .flags = O_RDWR, .path = one.path.c_str()});
        return why(one.fd) == "a standard stream";
    }));
    REQUIRE(truncate(one.path.c_str(), 0) == 0);
    close(null_device);
}

TEST_CASE("forked_child_forgets_parent_calls_and_both_continue") {
    Held one(quiet);
    File& file = file_of(one.fd);
    CHECK(in_child([&] {
        file.statistics.seeks = 3;
        file.bypassed.calls[1] = 4;
        state.few_call_totals.files = 2;
        file.active_calls.running = 0;
        buffer::prepare_fork_of_files();
        buffer::resume_after_fork(true);
        const bool clean = file.statistics.seeks == 0 && file.bypassed.calls[1] == 0 &&
                           state.few_call_totals.files == 0 && system::thread_state.depth == 0 &&
                           state.files_lock.try_lock(0);
        return clean && why(one.fd) == "a child process shares it" && contents(one.path) == one.text;
    }));
    REQUIRE(truncate(one.path.c_str(), 0) == 0);
    buffer::prepare_fork_of_files();
    CHECK_FALSE(state.files_lock.try_lock(0));
    CHECK(system::Critical::is_in_library());
    buffer::resume_after_fork(false);
    CHECK(state.files_lock.try_lock(0));
    state.files_lock.unlock();
    CHECK_FALSE(system::Critical::is_in_library());
    CHECK(why(one.fd) == "a child process shares it");
    CHECK(contents(one.path) == one.text);
}

TEST_CASE("reused_number_takes_old_data_with_it") {
    Held one(quiet);
    const std::string other = one.folder.path + "/other";
    File* const before = &file_of(one.fd);
    close(one.fd);  // behind our back
    const int again = open(other.c_str(), O_RDWR | O_CREAT, 0644);
    REQUIRE(again == one.fd);
    const std::uint32_t generation = before->generation;
    buffer::adopt_descriptor({.fd = again, .flags = O_RDWR, .path = other.c_str()});
    CHECK(before->generation == generation + 1);  // nobody has it open any more
    CHECK(file_of(again).inode != 0);
    CHECK(mode_of(again) == Mode::Active);
    CHECK(contents(one.path) == "");
}

TEST_CASE("silently_closed_duplicate_preserves_the_original") {
    Held one(quiet);
    const int copy = dup(one.fd);
    buffer::register_duplicate(one.fd, copy);
    const std::string other = one.folder.path + "/other";
    const int elsewhere = open(other.c_str(), O_RDWR | O_CREAT, 0644);
    const int first = one.fd;
    REQUIRE(dup2(elsewhere, first) == first);  // the library is not notified
    close(elsewhere);
    buffer::adopt_descriptor({.fd = first, .flags = O_RDWR, .path = other.c_str()});
    CHECK(buffer::table[copy].load()->fd == copy);
    CHECK(buffer::table[copy].load()->references == 1);
    CHECK(why(copy) == "a descriptor of it was closed where it could not be seen");
    CHECK(mode_of(first) == Mode::Active);
    CHECK(buffer::detach_descriptor(copy) == EIO);
    close(copy);
    buffer::register_duplicate(999, 1000);
    CHECK_FALSE(buffer::is_registered_descriptor(1000));
    buffer::release_file_of_descriptor(999, "nobody");
}

TEST_CASE("150 open files are tracked individually") {
    use(quiet);
    const Folder folder;
    std::vector<int> open_ones;
    for (int i = 0; i < 150; ++i) {
        const int fd = open((folder.path + "/" + std::to_string(i)).c_str(), O_RDWR | O_CREAT, 0644);
        if (fd < 0) {
            break;  // fewer descriptors are allowed here
        }
        buffer::adopt_descriptor({.fd = fd, .flags = O_RDWR, .path = "x"});
        open_ones.push_back(fd);
    }
    CHECK(buffer::files_known.load() == open_ones.size());
    for (const int fd : open_ones) {
        struct stat got {};
        REQUIRE(fstat(fd, &got) == 0);
        File* file = buffer::find_file(got.st_dev, got.st_ino);
        REQUIRE(file == &file_of(fd));
        file->lock.unlock();
        CHECK(buffer::find_file(got.st_dev + 1, got.st_ino) == nullptr);
    }
    for (const int fd : open_ones) {
        CHECK(close_buffered(fd) == 0);
    }
    CHECK_FALSE(buffer::has_registered_descriptors());
}

TEST_CASE("signals that came during a fork are let in at its end") {
    use(quiet);
    static int let_in = 0;
    let_in = 0;
    void (*const before)() = system::deliver_signals;
    system::deliver_signals = [] { ++let_in; };
    system::thread_state.has_deferred_signal = true;
    buffer::prepare_fork_of_files();
    CHECK(let_in == 0);
    buffer::resume_after_fork(false);
    CHECK(let_in == 1);
    system::thread_state.has_deferred_signal = false;
    buffer::prepare_fork_of_files();
    buffer::resume_after_fork(false);
    CHECK(let_in == 1);
    system::deliver_signals = before;
}

TEST_CASE("child has no running calls and threads of its parent") {
    Held one(quiet);
    CHECK(in_child([&] {
        File& file = file_of(one.fd);
        const std::uint32_t pool = buffer::pool.generation;
        buffer::prepare_fork_of_files();
        file.lock.lock();  // by a thread of the parent, which is not here
        file.active_calls.running = 2;
        file.active_calls.in_storage = 3;
        file.active_calls.is_gate_closed = true;
        file.pass_through_calls = 5;
        for (const int direction : {0, 1}) {
            file.bypassed.calls[direction] = 1;
            file.bypassed.bytes[direction] = 1;
        }
        state.few_call_totals.calls = state.few_call_totals.bytes = 3;
        buffer::pool.idle_walks = 2;
        buffer::pool.first = buffer::pool.count = 7;
        buffer::pool.is_ending = buffer::pool.has_failed = true;
        buffer::resume_after_fork(true);
        bool clean = file.lock.try_lock(0) && file.active_calls.running == 0 && file.active_calls.in_storage == 0 &&
                     !file.active_calls.is_gate_closed;
        clean &= file.pass_through_calls == 0 && state.few_call_totals.calls == 0 && state.few_call_totals.bytes == 0;
        for (const int direction : {0, 1}) {
            clean &= file.bypassed.calls[direction] == 0 && file.bypassed.bytes[direction] == 0;
        }
        clean &= buffer::pool.generation == pool + 1 && buffer::pool.idle_walks == 0 && buffer::pool.first == 0;
        clean &= buffer::pool.count == 0 && !buffer::pool.is_ending && !buffer::pool.has_failed &&
                 buffer::pool.running_threads == 0;
        return clean;
    }));
    REQUIRE(truncate(one.path.c_str(), 0) == 0);
}

TEST_CASE("first_disable_reason_wins") {
    use(quiet);
    int handle = 0;
    CHECK_FALSE(buffer::is_shared(&handle));
    buffer::release_shared(&handle, "nothing");
    buffer::sync_shared(&handle);
    buffer::prepare_child_process(buffer::ChildKind::Copy);
    Held one(quiet);
    buffer::disable_buffering("first");
    buffer::disable_buffering("second");
    CHECK(why(one.fd) == "first");
    state.is_disabled = false;
    buffer::move_own_descriptor(999'999);  // nobody has it
    CHECK_FALSE(buffer::is_own_descriptor(-1));
}
