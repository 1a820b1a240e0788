// SPDX-License-Identifier: Apache-2.0
// Tests calls that bypass a suspended file: their number, their counters, and the wait for them.
#include "model/bypass.hpp"

#include "dirty_file.hpp"

#include "model/state.hpp"
#include "modes/modes.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

using namespace under_test;
using buffer::CallResult;
using buffer::File;
using buffer::IoPart;
using buffer::Mode;

TEST_CASE("suspension_of_n_calls_passes_n_and_resumes") {
    Held one(quiet);
    File& file = file_of(one.fd);
    file.lock.lock();
    buffer::suspend_for(file, 3);
    file.lock.unlock();
    CHECK(file.is_retry_planned);
    CHECK(file.calls_until_retry.load() == 3);
    char data[10];
    const IoPart part{data, 10};
    for (int remaining = 2; remaining > 0; --remaining) {
        const CallResult answer = buffer::read(one.fd, &part, 1, 0);
        CHECK_FALSE(answer.is_done);
        CHECK(answer.pass_through_file == &file);
        CHECK(answer.direction == 0);
        CHECK(file.pass_through_calls.load() == 1);
        CHECK(file.calls_until_retry.load() == remaining);
        CHECK(buffer::make_real_call(answer, [] { return ssize_t{10}; }) == 10);
        CHECK(file.pass_through_calls.load() == 0);
    }
    CHECK(buffer::read(one.fd, &part, 1, 0).is_done);
    CHECK(mode_of(one.fd) == Mode::Active);
    CHECK_FALSE(file.is_retry_planned);
    CHECK(file.pass_through_calls.load() == 0);
    CHECK(file.bypassed.calls[0].load() == 2);
    CHECK(file.bypassed.bytes[0].load() == 20);
    CHECK(file.bypassed.calls[1].load() == 0);
}

TEST_CASE("exclusive_call_delays_resume_by_64_calls") {
    Held one(quiet);
    File& file = file_of(one.fd);
    const buffer::PassThrough around(one.fd);
    file.is_retry_planned = true;
    file.calls_until_retry = 1;
    char data[10];
    const IoPart part{data, 10};
    const CallResult answer = buffer::write(one.fd, &part, 1, 0);
    CHECK_FALSE(answer.is_done);
    CHECK(answer.direction == 1);
    CHECK(file.pass_through_calls.load() == 1);
    CHECK(file.is_retry_planned);
    CHECK(file.calls_until_retry.load() == 63);
    CHECK(buffer::make_real_call(answer, [] { return ssize_t{-1}; }) == -1);  // what failed moved nothing
    CHECK(file.bypassed.calls[1].load() == 1);
    CHECK(file.bypassed.bytes[1].load() == 0);
    file.is_retry_planned = false;
}

TEST_CASE("bypassed_calls_count_for_their_file_only") {
    Held first(quiet);
    const Held second(quiet);
    const auto asleep = [](File& file) {
        file.lock.lock();
        buffer::suspend_for(file, 1000);
        file.lock.unlock();
    };
    File& file = file_of(first.fd);
    File& two = file_of(second.fd);
    asleep(file);
    asleep(two);
    char data[10];
    const IoPart part{data, 10};
    buffer::make_real_call(buffer::read(first.fd, &part, 1, 0), [] { return ssize_t{10}; });  // takes a place
    REQUIRE(buffer::own_bypass_slot != nullptr);
    buffer::own_bypass_slot->calls = 0;
    const auto bypass_once = [](int fd, bool writes, ssize_t got) {
        buffer::BypassSlot* slot = buffer::enter_bypass(fd);
        REQUIRE(slot != nullptr);
        CHECK(slot->file.load() == &file_of(fd));
        buffer::leave_bypass(*slot, writes, got);
        CHECK(slot->file.load() == nullptr);
    };
    bypass_once(first.fd, false, 100);
    bypass_once(first.fd, false, -1);
    bypass_once(first.fd, true, 7);
    bypass_once(second.fd, true, 1000);
    bypass_once(first.fd, true, 3);
    CHECK(buffer::enter_bypass(999) == nullptr);
    const std::uint64_t calls_before = file.statistics.read.calls;
    buffer::collect_bypass_counts(file);
    CHECK(file.statistics.read.bypassed == 3);
    CHECK(file.statistics.read.calls == calls_before + 3);
    CHECK(file.statistics.read.storage_calls == 3);
    CHECK(file.statistics.read.bytes == 110);
    CHECK(file.statistics.read.storage_bytes == 110);
    CHECK(file.statistics.write.bypassed == 2);
    CHECK(file.statistics.write.storage_bytes >= 10);
    buffer::collect_bypass_counts(two);
    CHECK(two.statistics.write.bypassed == 1);
    CHECK(two.statistics.read.bypassed == 0);
    buffer::collect_bypass_counts(file);
    CHECK(file.statistics.read.bypassed == 3);  // once
}

TEST_CASE("bypass_slot_counts_suspension_by_the_score") {
    Held held(quiet);
    File& file = file_of(held.fd);
    file.lock.lock();
    buffer::suspend_for(file, 1000);
    file.lock.unlock();
    char data[10];
    const IoPart part{data, 10};
    buffer::make_real_call(buffer::read(held.fd, &part, 1, 0), [] { return ssize_t{10}; });
    REQUIRE(buffer::own_bypass_slot != nullptr);
    buffer::own_bypass_slot->calls = 0;
    file.calls_until_retry = 40;
    for (int i = 1; i <= 32; ++i) {
        buffer::BypassSlot* slot = buffer::enter_bypass(held.fd);
        if (slot == nullptr) {
            break;
        }
        buffer::leave_bypass(*slot);
        CHECK(file.calls_until_retry.load() == (i < 16 ? 40 : i < 32 ? 24 : 8));
    }
    CHECK(file.calls_until_retry.load() == 8);
    CHECK(buffer::enter_bypass(held.fd) == nullptr);  // the last ones are counted one by one
    CHECK(buffer::own_bypass_slot->file.load() == nullptr);
    file.calls_until_retry = 17;
    buffer::BypassSlot* slot = buffer::enter_bypass(held.fd);
    CHECK(slot != nullptr);
    CHECK(buffer::bypass_in_flight(file) == 1);
    buffer::leave_bypass(*slot);
    CHECK(buffer::bypass_in_flight(file) == 0);
    file.calls_until_retry = 16;
    CHECK(buffer::enter_bypass(held.fd) == nullptr);
    file.pass_through_calls = 1;
    CHECK(buffer::bypass_in_flight(file) == 1);
    file.pass_through_calls = 0;
}

TEST_CASE("suspended_file_stays_suspended_after_exclusive_call") {
    Held held(quiet);
    File& file = file_of(held.fd);
    file.lock.lock();
    buffer::suspend_for(file, 100);
    file.lock.unlock();
    { const buffer::PassThrough around(held.fd); }
    CHECK(mode_of(held.fd) == Mode::Suspended);
    CHECK(file.active_calls.exclusive_calls == 0);
    CHECK(file.calls_until_retry.load() == 100);
    CHECK(file.statistics.interruptions == 0);
}

TEST_CASE("close_during_exclusive_call_detaches_it") {
    use(quiet);
    const Folder folder;
    const int fd = open_buffered(folder.path + "/first", O_RDWR | O_CREAT);
    File* const object = &file_of(fd);
    int next = -1;
    {
        const buffer::PassThrough around(fd);
        CHECK(object->active_calls.exclusive_calls == 1);
        CHECK(close_buffered(fd) == 0);
        next = open_buffered(folder.path + "/second", O_RDWR | O_CREAT);
        REQUIRE(&file_of(next) == object);  // the next life of the same object
        CHECK(object->active_calls.exclusive_calls == 0);
    }
    CHECK(object->active_calls.exclusive_calls == 0);
    CHECK(mode_of(next) == Mode::Active);
    CHECK(close_buffered(next) == 0);
}
