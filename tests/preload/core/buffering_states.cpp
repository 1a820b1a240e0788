// SPDX-License-Identifier: Apache-2.0
// Suspended, awake and let go: what each way from one to another leaves behind. And what is true of an object that was
// just made.
#include "modes/modes.hpp"

#include "dirty_file.hpp"

#include "cache/pages.hpp"
#include "cache/readahead.hpp"
#include "files/lifecycle.hpp"
#include "model/state.hpp"
#include "model/unlocked_scope.hpp"
#include "system/clock.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

using namespace under_test;
using buffer::File;
using buffer::Mode;
using buffer::PageActivity;
using buffer::state;

namespace {

/// Holds the lock of a file during its lifetime.
struct Locked {
    File& file;
    const system::LockGuard hold;
    explicit Locked(int fd) : file(file_of(fd)), hold(file.lock) {}
};

}  // namespace

TEST_CASE("suspend_flushes_data_and_offsets_and_resume_restores_both") {
    const std::uint32_t before = state.undelivered_pages.load();
    Held one(quiet);
    CHECK(state.undelivered_pages.load() == before + 1);
    CHECK(buffer::has_any_dirty_file());
    const int other = open_buffered(one.path, O_RDWR);
    CHECK(buffer::seek(one.fd, 7, SEEK_SET).value == 7);
    CHECK(buffer::seek(other, 9, SEEK_SET).value == 9);
    const Locked held(one.fd);
    buffer::suspend_buffering(held.file);
    CHECK(held.file.mode.load() == Mode::Suspended);
    CHECK(lseek(one.fd, 0, SEEK_CUR) == 7);
    CHECK(lseek(other, 0, SEEK_CUR) == 9);
    CHECK(held.file.pages.count == 0);
    CHECK_FALSE(held.file.is_retry_planned);  // until somebody wakes it
    CHECK(contents(one.path) == one.text);
    CHECK(state.undelivered_pages.load() == before);
    REQUIRE(lseek(other, 11, SEEK_SET) == 11);
    REQUIRE(ftruncate(one.fd, 400) == 0);
    buffer::resume_buffering(held.file);
    CHECK(held.file.mode.load() == Mode::Active);
    CHECK(buffer::table[one.fd].load()->offset == 7);
    CHECK(buffer::table[other].load()->offset == 11);
    CHECK(held.file.size == 400);
    CHECK(held.file.append.kernel_size == 400);
    CHECK_FALSE(held.file.active_calls.is_gate_closed);
    held.file.lock.unlock();
    CHECK(close_buffered(other) == 0);
    held.file.lock.lock();
}

TEST_CASE("pending_call_prevents_resume_and_suspensions_grow") {
    Held one(quiet);
    File& file = file_of(one.fd);
    {
        const Locked held(one.fd);
        buffer::suspend_for(file, 1000);
    }
    char data[10];
    const buffer::IoPart part{data, 10};
    buffer::make_real_call(buffer::read(one.fd, &part, 1, 0), [] { return 10; });
    buffer::BypassSlot* slot = buffer::enter_bypass(one.fd);
    REQUIRE(slot != nullptr);
    for (const int calls : {1024, 2048, 4096}) {
        const Locked held(one.fd);
        buffer::resume_buffering(file);
        CHECK(file.mode.load() == Mode::Suspended);
        CHECK(file.is_retry_planned);
        CHECK(file.calls_until_retry.load() == calls);
        CHECK_FALSE(file.active_calls.is_gate_closed);
    }
    buffer::leave_bypass(*slot);
    const Locked held(one.fd);
    buffer::resume_buffering(file);
    CHECK(file.mode.load() == Mode::Active);
    CHECK_FALSE(file.is_retry_planned);
}

TEST_CASE("foreign_append_releases_at_resume_and_keeps_reason") {
    Held one(quiet);
    const Locked held(one.fd);
    buffer::suspend_buffering(held.file);
    held.file.append.has_foreign_growth = true;
    buffer::resume_buffering(held.file);
    CHECK(held.file.mode.load() == Mode::Released);
    CHECK(why(one.fd) == buffer::why_grown);
    buffer::release_file(held.file, "later");
    CHECK(why(one.fd) == buffer::why_grown);
    buffer::resume_buffering(held.file);
    buffer::suspend_for(held.file, 5);
    CHECK(held.file.mode.load() == Mode::Released);
    CHECK_FALSE(held.file.is_retry_planned);
}

TEST_CASE("appended_end_must_be_where_expected") {
    File file;
    file.append.kernel_size = 100;
    buffer::check_appended_size(file, 20, 120);
    CHECK(file.append.kernel_size == 120);
    CHECK_FALSE(file.append.has_foreign_growth);
    buffer::check_appended_size(file, 20, 150);
    CHECK(file.append.has_foreign_growth);
    CHECK(file.append.kernel_size == 150);
}

TEST_CASE("larger_kernel_size_is_adopted_unless_appending") {
    Held one(quiet);
    const Locked held(one.fd);
    File& file = held.file;
    CHECK(file.size == 500);
    buffer::update_size_from_kernel(file);
    CHECK(file.size == 500);  // of which the kernel knows nothing yet
    REQUIRE(pwrite(one.fd, "x", 1, 599) == 1);
    CHECK(buffer::read_size_from_kernel(one.fd) == 600);
    CHECK(buffer::read_size_from_kernel(-1) == -1);
    buffer::update_size_from_kernel(file);
    CHECK(file.size == 600);
    file.append = {.only_appends = true, .has_foreign_growth = false, .kernel_size = 600};
    buffer::update_size_from_kernel(file);
    CHECK_FALSE(file.append.has_foreign_growth);
    file.append.kernel_size = 599;
    file.active_calls.in_storage = 1;  // which may be what has made it longer
    buffer::update_size_from_kernel(file);
    CHECK_FALSE(file.append.has_foreign_growth);
    file.active_calls.in_storage = 0;
    buffer::update_size_from_kernel(file);
    CHECK(file.append.has_foreign_growth);
    CHECK(file.size == 600);
    file.append = {};
    File nobody;
    buffer::update_size_from_kernel(nobody);
    CHECK(nobody.size == 0);
}

TEST_CASE("file_uses_readable_and_writable_descriptors") {
    use(quiet);
    const Folder folder;
    const std::string path = folder.path + "/data";
    close(open(path.c_str(), O_CREAT | O_RDWR, 0644));
    const int reader = open_buffered(path, O_RDONLY);
    File& file = file_of(reader);
    CHECK(file.descriptors.read_fd == reader);
    CHECK(file.descriptors.write_fd == -1);
    const int writer = open_buffered(path, O_WRONLY);
    CHECK(file.descriptors.read_fd == reader);
    CHECK(file.descriptors.write_fd == writer);
    CHECK(buffer::is_active(reader));
    CHECK_FALSE(buffer::is_active(999));
    CHECK(close_buffered(reader) == 0);
    CHECK(file.descriptors.read_fd == -1);
    CHECK(file.descriptors.write_fd == writer);
    buffer::release_file_of_descriptor(writer, "test");
    CHECK_FALSE(buffer::is_active(writer));
    CHECK(close_buffered(writer) == 0);
}

TEST_CASE("visit_skips_files_with_locked_state") {
    const Held one(quiet);
    const Held two(quiet);
    static std::vector<File*> visited;
    const auto visits = [](std::int64_t limit_ns) {
        visited.clear();
        buffer::for_each_file([](File& file) { visited.push_back(&file); }, limit_ns);
        return visited.size();
    };
    CHECK(visits(-1) == 2);
    CHECK(visits(1'000'000'000) == 2);
    const Locked held(one.fd);
    REQUIRE(visits(0) == 1);
    CHECK(visited[0] == &file_of(two.fd));
}

TEST_CASE("unlocked_scope_frees_lock_keeps_errno_and_counts_time") {
    Held one(quiet);
    File& file = file_of(one.fd);
    file.lock.lock();
    std::uint64_t waited = 5;
    errno = 77;
    const std::uint64_t before = system::now_ns();
    buffer::UnlockedScope unlocked(file, &waited);
    REQUIRE(file.lock.try_lock(0));
    file.lock.unlock();
    int state_before = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_before);
    CHECK(state_before == PTHREAD_CANCEL_DISABLE);
    errno = 3;
    while (system::now_ns() - before < 100'000) {
    }
    unlocked.end();
    CHECK(errno == 77);
    CHECK_FALSE(file.lock.try_lock(0));
    CHECK(unlocked.elapsed_ns >= 100'000 - 10'000);
    CHECK(unlocked.elapsed_ns <= system::now_ns() - before);
    CHECK(waited == 5 + unlocked.elapsed_ns);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state_before);
    CHECK(state_before == PTHREAD_CANCEL_ENABLE);
    buffer::UnlockedScope unnoticed(file, nullptr);
    unnoticed.end();
    file.lock.unlock();
}

TEST_CASE("fresh_objects_are_empty") {
    const buffer::Page page{};
    CHECK_FALSE((page.is_dirty || page.is_written_past || page.is_read_ahead || page.has_memory));
    CHECK(page.activity == PageActivity::No);
    CHECK((page.valid.empty() && page.dirty.empty() && page.valid.bytes() == 0));
    CHECK((page.load_begin == 0 && page.load_end == 0));
    const buffer::Stream stream{};
    CHECK((stream.calls == 0 && stream.forward == 0 && stream.backward == 0 && stream.equal_steps == 0));
    CHECK((stream.last_begin == 0 && stream.last_end == 0 && stream.step == 0 && stream.planned_from_page == -1));
    const buffer::Description description{};
    CHECK((description.fd == -1 && description.references == 0 && description.offset == 0));
    CHECK_FALSE((description.reads || description.writes || description.appends || description.is_offset_busy));
    const auto file = std::make_unique<File>();
    CHECK(file->mode.load() == Mode::Unused);
    CHECK((file->descriptors.read_fd == -1 && file->descriptors.write_fd == -1 &&
           file->descriptors.direct_read_fd == -1 && file->descriptors.direct_write_fd == -1));
    CHECK((file->pages.count == 0 && file->pages.queued_for_read_ahead == 0));
    CHECK((file->dirty.pages == 0 && file->active_calls.running == 0 && file->active_calls.in_storage == 0 &&
           file->active_calls.exclusive_calls == 0));
    CHECK_FALSE((file->active_calls.is_gate_closed || file->active_calls.is_write_in_flight ||
                 file->active_calls.is_program_writing));
    CHECK((file->errors.last_errno == 0 && file->errors.count == 0 && file->errors.retry_after_ns == 0));
    CHECK((file->profitability.speculative_loads_left == 4 && file->profitability.probes == 0 &&
           file->profitability.measured_transfers == 0));
    CHECK((file->profitability.best_bytes_per_us == 0 && file->profitability.small_call_ns == 0 &&
           file->profitability.suspension_calls == 0));
    CHECK((file->profitability.window_calls == 0 && file->profitability.window_hits == 0 &&
           file->profitability.read_ahead_pause == 0));
    CHECK((file->profitability.uncached_pages[127].index == -1 && file->profitability.uncached_pages[0].touches == 0));
    CHECK_FALSE((file->has_posix_locks.load() || file->append.only_appends || file->append.has_foreign_growth));
    CHECK((file->size == 0 && file->generation == 0 && file->queued_pool_generation == 0 &&
           file->accepted_since_check == 0));
    CHECK_FALSE((file->is_write_through || file->has_release_request || file->is_shared || file->is_inherited ||
                 file->is_watched));
    CHECK_FALSE(file->is_retry_planned.load());
    CHECK((file->pass_through_calls.load() == 0 && file->calls_until_retry.load() == 0));
}

TEST_CASE("pages_take_a_quarter_of_free_memory_at_most") {
    const auto most = [](const char* params) {
        use(params);
        return static_cast<double>(state.max_memory_bytes.load());
    };
    const double least = 16U << 20U;
    struct sysinfo machine {};
    REQUIRE(sysinfo(&machine) == 0);
    const double free = static_cast<double>(machine.freeram + machine.bufferram) * machine.mem_unit;
    const double quarter = most("*,%process:maxmem=100000g");
    CHECK(quarter >= least);
    // Free space changes while other processes work.
    CHECK((free < 1e9 || (quarter > free / 12 && quarter < free)));
    CHECK(most("*,%process:maxmem=1m") == 1 << 20);
    use(quiet);
}
