// SPDX-License-Identifier: Apache-2.0
// Calls that go past a file that sleeps: how many, who counts them, and who is waited for.
#include "model/bypass.hpp"

#include "held.hpp"

#include "model/state.hpp"
#include "modes/modes.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

using namespace under_test;
using buffer::Answer;
using buffer::File;
using buffer::Mode;
using buffer::Vector;

TEST_CASE("a file that sleeps for some calls lets so many go past, and the next one is done here") {
    Held one(quiet);
    File& file = file_of(one.fd);
    file.lock.lock();
    buffer::suspend_for(file, 3);
    file.lock.unlock();
    CHECK(file.dormant);
    CHECK(file.dormant_left.load() == 3);
    char data[10];
    const Vector part{data, 10};
    for (int left = 2; left > 0; --left) {
        const Answer answer = buffer::read(one.fd, &part, 1, 0);
        CHECK_FALSE(answer.done);
        CHECK(answer.passing == &file);
        CHECK(answer.counted == 0);
        CHECK(file.passing.load() == 1);
        CHECK(file.dormant_left.load() == left);
        CHECK(buffer::pass(answer, [] { return ssize_t{10}; }) == 10);
        CHECK(file.passing.load() == 0);
    }
    CHECK(buffer::read(one.fd, &part, 1, 0).done);
    CHECK(mode_of(one.fd) == Mode::Active);
    CHECK_FALSE(file.dormant);
    CHECK(file.passing.load() == 0);
    CHECK(file.passed.calls[0].load() == 2);
    CHECK(file.passed.bytes[0].load() == 20);
    CHECK(file.passed.calls[1].load() == 0);
}

TEST_CASE("a call that would wake a file which somebody must see as it is goes past, and so do the next 63") {
    Held one(quiet);
    File& file = file_of(one.fd);
    const buffer::Around around(one.fd);
    file.dormant = true;
    file.dormant_left = 1;
    char data[10];
    const Vector part{data, 10};
    const Answer answer = buffer::write(one.fd, &part, 1, 0);
    CHECK_FALSE(answer.done);
    CHECK(answer.counted == 1);
    CHECK(file.passing.load() == 1);
    CHECK(file.dormant);
    CHECK(file.dormant_left.load() == 63);
    CHECK(buffer::pass(answer, [] { return ssize_t{-1}; }) == -1);  // what failed moved nothing
    CHECK(file.passed.calls[1].load() == 1);
    CHECK(file.passed.bytes[1].load() == 0);
    file.dormant = false;
}

TEST_CASE("calls that went past are told with the others, by the file that they went to, whoever counted them") {
    Held first(quiet);
    const Held second(quiet);
    const auto asleep = [](File& file) {
        file.lock.lock();
        buffer::suspend_for(file, 1000);
        file.lock.unlock();
    };
    File& one = file_of(first.fd);
    File& two = file_of(second.fd);
    asleep(one);
    asleep(two);
    char data[10];
    const Vector part{data, 10};
    buffer::pass(buffer::read(first.fd, &part, 1, 0), [] { return ssize_t{10}; });  // takes a place
    REQUIRE(buffer::own_bypass_slot != nullptr);
    buffer::own_bypass_slot->calls = 0;
    const auto past = [](int fd, bool writes, ssize_t got) {
        buffer::Place* place = buffer::enter_bypass(fd);
        REQUIRE(place != nullptr);
        CHECK(place->file.load() == &file_of(fd));
        buffer::leave_bypass(*place, writes, got);
        CHECK(place->file.load() == nullptr);
    };
    past(first.fd, false, 100);
    past(first.fd, false, -1);
    past(first.fd, true, 7);
    past(second.fd, true, 1000);
    past(first.fd, true, 3);
    CHECK(buffer::enter_bypass(999) == nullptr);
    const std::uint64_t asked = one.statistics.read.asked;
    buffer::collect_bypass_counts(one);
    CHECK(one.statistics.read.past == 3);
    CHECK(one.statistics.read.asked == asked + 3);
    CHECK(one.statistics.read.below == 3);
    CHECK(one.statistics.read.asked_bytes == 110);
    CHECK(one.statistics.read.below_bytes == 110);
    CHECK(one.statistics.write.past == 2);
    CHECK(one.statistics.write.below_bytes >= 10);
    buffer::collect_bypass_counts(two);
    CHECK(two.statistics.write.past == 1);
    CHECK(two.statistics.read.past == 0);
    buffer::collect_bypass_counts(one);
    CHECK(one.statistics.read.past == 3);  // once
}

TEST_CASE("a thread with a place counts the calls of a sleep by the score, and ends no sleep itself") {
    Held one(quiet);
    File& file = file_of(one.fd);
    file.lock.lock();
    buffer::suspend_for(file, 1000);
    file.lock.unlock();
    char data[10];
    const Vector part{data, 10};
    buffer::pass(buffer::read(one.fd, &part, 1, 0), [] { return ssize_t{10}; });
    REQUIRE(buffer::own_bypass_slot != nullptr);
    buffer::own_bypass_slot->calls = 0;
    file.dormant_left = 40;
    for (int i = 1; i <= 32; ++i) {
        buffer::Place* place = buffer::enter_bypass(one.fd);
        if (place == nullptr) {
            break;
        }
        buffer::leave_bypass(*place);
        CHECK(file.dormant_left.load() == (i < 16 ? 40 : i < 32 ? 24 : 8));
    }
    CHECK(file.dormant_left.load() == 8);
    CHECK(buffer::enter_bypass(one.fd) == nullptr);  // the last ones are counted one by one
    CHECK(buffer::own_bypass_slot->file.load() == nullptr);
    file.dormant_left = 17;
    buffer::Place* place = buffer::enter_bypass(one.fd);
    CHECK(place != nullptr);
    CHECK(buffer::bypass_in_flight(file) == 1);
    buffer::leave_bypass(*place);
    CHECK(buffer::bypass_in_flight(file) == 0);
    file.dormant_left = 16;
    CHECK(buffer::enter_bypass(one.fd) == nullptr);
    file.passing = 1;
    CHECK(buffer::bypass_in_flight(file) == 1);
    file.passing = 0;
}

TEST_CASE("a file that sleeps because it does not pay stays asleep after a call that must see it") {
    Held one(quiet);
    File& file = file_of(one.fd);
    file.lock.lock();
    buffer::suspend_for(file, 100);
    file.lock.unlock();
    { const buffer::Around around(one.fd); }
    CHECK(mode_of(one.fd) == Mode::Suspended);
    CHECK(file.turns.around == 0);
    CHECK(file.dormant_left.load() == 100);
    CHECK(file.statistics.given_up == 0);
}

TEST_CASE("a file that is closed while a call must see it is none of that call's any more") {
    use(quiet);
    const Folder folder;
    const int fd = open_buffered(folder.path + "/first", O_RDWR | O_CREAT);
    File* const object = &file_of(fd);
    int next = -1;
    {
        const buffer::Around around(fd);
        CHECK(object->turns.around == 1);
        CHECK(close_buffered(fd) == 0);
        next = open_buffered(folder.path + "/second", O_RDWR | O_CREAT);
        REQUIRE(&file_of(next) == object);  // the next life of the same object
        CHECK(object->turns.around == 0);
    }
    CHECK(object->turns.around == 0);
    CHECK(mode_of(next) == Mode::Active);
    CHECK(close_buffered(next) == 0);
}
