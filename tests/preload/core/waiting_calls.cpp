// SPDX-License-Identifier: Apache-2.0
// Tests which calls of another thread wait while a file is closed, released or transferred.
#include "dirty_file.hpp"

#include "cache/pages.hpp"
#include "cache/writeback.hpp"
#include "files/lifecycle.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

using namespace under_test;
using buffer::Description;
using buffer::File;
using buffer::IoPart;
using buffer::Mode;

namespace {

/// A second thread, of which the test can detect that it waits for a futex (a lock or a condition).
class Beside {
 public:
    explicit Beside(std::function<void()> call)
        : thread_([this, call = std::move(call)] {
              tid_ = static_cast<int>(syscall(SYS_gettid));
              call();
              ended_ = true;
          }) {}
    ~Beside() { thread_.join(); }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;
    bool ended() const { return ended_; }
    /// Returns true as soon as the thread waits; false if it ends first, or does not wait within a minute.
    bool waits() const {
        const auto late = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        const std::string futex = std::to_string(SYS_futex) + " ";
        while (!ended_ && std::chrono::steady_clock::now() < late) {
            std::ifstream what("/proc/self/task/" + std::to_string(tid_) + "/syscall");
            std::string line;
            if (tid_ != 0 && std::getline(what, line) && line.rfind(futex, 0) == 0) {
                return true;
            }
            std::this_thread::yield();
        }
        return false;
    }

 private:
    std::atomic<int> tid_{0};
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

/// Without this file of the kernel, the state of a thread is unknown.
bool can_be_seen() {
    return std::ifstream("/proc/self/syscall").good();
}

}  // namespace

TEST_CASE("waiter_finds_closed_descriptor_and_holds_nothing" * doctest::skip(!can_be_seen())) {
    Held one(quiet);
    File& file = file_of(one.fd);
    Description* const description = buffer::table[one.fd].load();
    char data[10];
    const IoPart part{data, 10};
    for (int scenario = 0; scenario < 3; ++scenario) {
        CAPTURE(scenario);
        std::atomic<bool> has_returned{false};
        file.lock.lock();
        {
            const Beside other([&] {
                if (scenario == 0) {
                    has_returned = !buffer::read(one.fd, &part, 1, 0).is_done;
                } else if (scenario == 1) {
                    Description* current = nullptr;
                    has_returned = buffer::lock_file_of_descriptor(one.fd, current) == nullptr && current == nullptr;
                } else {
                    has_returned = !buffer::has_dirty_pages(one.fd);
                }
            });
            CHECK(other.waits());
            CHECK_FALSE(other.ended());
            buffer::table[one.fd] = nullptr;
            file.lock.unlock();
        }
        CHECK(has_returned);
        buffer::table[one.fd] = description;
        REQUIRE(file.lock.try_lock(1'000'000'000));
        CHECK(file.active_calls.running == 0);
        file.lock.unlock();
    }
}

TEST_CASE("call_waits_for_gate_offset_and_other_write" * doctest::skip(!can_be_seen())) {
    Held one(quiet);
    File& file = file_of(one.fd);
    Description& description = *buffer::table[one.fd].load();
    char data[10] = {};
    const IoPart part{data, 10};
    const auto read_here = [&] { CHECK(buffer::read(one.fd, &part, 1, buffer::current_offset).value == 10); };
    const auto read_there = [&] { CHECK(buffer::read(one.fd, &part, 1, 0).value == 10); };
    const auto write_there = [&] { CHECK(buffer::write(one.fd, &part, 1, 0).value == 10); };
    const auto waits = [&](const std::function<void()>& call, bool& why) {
        file.lock.lock();
        why = true;
        file.lock.unlock();
        bool waited = false;
        {
            const Beside other(call);
            waited = other.waits();
            CHECK(waited == !other.ended());
            file.lock.lock();
            why = false;
            file.change_condition.notify_all();
            file.lock.unlock();
        }
        CHECK(file.active_calls.running == 0);
        return waited;
    };
    CHECK(waits(read_there, file.active_calls.is_gate_closed));
    CHECK(waits(write_there, file.active_calls.is_gate_closed));
    CHECK(waits(read_here, description.is_offset_busy));
    CHECK_FALSE(waits(read_there, description.is_offset_busy));
    CHECK(waits(write_there, file.active_calls.is_program_writing));
    CHECK_FALSE(waits(read_there, file.active_calls.is_program_writing));
    CHECK(buffer::seek(one.fd, 0, SEEK_CUR).value == 10);
    CHECK(file.statistics.wait_ns > 0);
}

TEST_CASE("suspend_waits_for_running_calls_and_admits_none" * doctest::skip(!can_be_seen())) {
    Held one(quiet);
    File& file = file_of(one.fd);
    for (int* const under_way : {&file.active_calls.running, &file.active_calls.in_storage}) {
        file.lock.lock();
        *under_way = 1;
        file.lock.unlock();
        {
            const Beside other([&] {
                file.lock.lock();
                buffer::suspend_buffering(file);
                file.lock.unlock();
            });
            CHECK(other.waits());
            file.lock.lock();
            CHECK(file.active_calls.is_gate_closed);
            CHECK(file.mode.load() == Mode::Active);
            *under_way = 0;
            file.change_condition.notify_all();
            file.lock.unlock();
        }
        CHECK(file.mode.load() == Mode::Suspended);
        CHECK_FALSE(file.active_calls.is_gate_closed);
        file.lock.lock();
        buffer::resume_buffering(file);
        CHECK(file.mode.load() == Mode::Active);
        file.lock.unlock();
    }
    file.lock.lock();
    buffer::close_gate(file);
    file.lock.unlock();
    {
        const Beside second([&] {
            file.lock.lock();
            buffer::close_gate(file);  // one after the other
            buffer::open_gate(file);
            file.lock.unlock();
        });
        CHECK(second.waits());
        file.lock.lock();
        buffer::open_gate(file);
        file.lock.unlock();
    }
    CHECK_FALSE(file.active_calls.is_gate_closed);
}

TEST_CASE("busy_page_is_waited_for" * doctest::skip(!can_be_seen())) {
    Held one(quiet);
    File& file = file_of(one.fd);
    char data[10] = {};
    const IoPart part{data, 10};
    const auto waits = [&](buffer::PageActivity busy, bool writes, off64_t offset) {
        buffer::Page* page = buffer::find_page(file, 0);
        REQUIRE(page != nullptr);
        file.lock.lock();
        page->activity = busy;
        file.lock.unlock();
        bool waited = false;
        {
            const Beside other([&] {
                const buffer::CallResult answer =
                    writes ? buffer::write(one.fd, &part, 1, offset) : buffer::read(one.fd, &part, 1, offset);
                CHECK(answer.value == 10);
            });
            waited = other.waits();
            file.lock.lock();
            page->activity = buffer::PageActivity::No;
            file.change_condition.notify_all();
            file.lock.unlock();
        }
        return waited;
    };
    CHECK(waits(buffer::PageActivity::Loading, false, 0));
    CHECK(waits(buffer::PageActivity::Loading, true, 0));
    CHECK(waits(buffer::PageActivity::Writing, true, 0));
    CHECK_FALSE(waits(buffer::PageActivity::Writing, false, 0));  // which is not changed by it
    CHECK_FALSE(waits(buffer::PageActivity::No, true, 20));
    CHECK(file.statistics.read.hits == 1);  // who waited was not answered at once
}

TEST_CASE("flush_waits_for_running_write_and_load" * doctest::skip(!can_be_seen())) {
    Held one(quiet);
    File& file = file_of(one.fd);
    const auto flushes = [&] {
        file.lock.lock();
        CHECK(buffer::flush_file(file) == 0);
        file.lock.unlock();
    };
    file.lock.lock();
    file.active_calls.is_write_in_flight = true;
    file.lock.unlock();
    {
        const Beside other(flushes);
        CHECK(other.waits());
        CHECK(contents(one.path) == "");
        CHECK(buffer::has_dirty_pages(one.fd));
        file.lock.lock();
        file.active_calls.is_write_in_flight = false;
        file.dirty.first->activity = buffer::PageActivity::Loading;
        file.change_condition.notify_all();
        file.lock.unlock();
        CHECK(other.waits());
        file.lock.lock();
        file.dirty.first->activity = buffer::PageActivity::No;
        file.change_condition.notify_all();
        file.lock.unlock();
    }
    CHECK(contents(one.path) == one.text);
}

TEST_CASE("waiting_call_bypasses_suspended_file_or_runs_if_active" * doctest::skip(!can_be_seen())) {
    Held one(quiet);
    File& file = file_of(one.fd);
    char data[10];
    const IoPart part{data, 10};
    for (const bool asleep : {true, false}) {
        CAPTURE(asleep);
        buffer::CallResult answer{true, nullptr, 0};
        file.lock.lock();
        {
            const Beside other([&] {
                answer = buffer::read(one.fd, &part, 1, 0);
                if (!answer.is_done) {
                    buffer::make_real_call(answer, [] { return 10; });
                }
            });
            CHECK(other.waits());
            buffer::suspend_buffering(file);
            if (!asleep) {
                buffer::resume_buffering(file);
            }
            file.lock.unlock();
        }
        CHECK(answer.is_done == !asleep);
        REQUIRE(file.lock.try_lock(1'000'000'000));
        buffer::resume_buffering(file);
        CHECK(file.mode.load() == Mode::Active);
        CHECK(file.active_calls.running == 0);
        file.lock.unlock();
    }
}

TEST_CASE("resume_waits_for_exclusive_calls" * doctest::skip(!can_be_seen())) {
    Held one(quiet);
    File& file = file_of(one.fd);
    for (const bool woken : {false, true}) {
        CAPTURE(woken);
        file.lock.lock();
        buffer::suspend_buffering(file);
        buffer::close_gate(file);
        file.lock.unlock();
        {
            const Beside other([&] {
                file.lock.lock();
                buffer::resume_buffering(file);
                file.lock.unlock();
            });
            CHECK(other.waits());
            CHECK(file.mode.load() == Mode::Suspended);
            file.lock.lock();
            if (woken) {
                file.mode = Mode::Active;
                file.size = 12'345;
            }
            buffer::open_gate(file);
            file.lock.unlock();
        }
        CHECK(file.mode.load() == Mode::Active);
        CHECK(file.size == (woken ? 12'345 : 500));
        CHECK_FALSE(file.active_calls.is_gate_closed);
    }
}

TEST_CASE("dirty_page_with_pending_load_is_written_later" * doctest::skip(!can_be_seen())) {
    Held one(quiet);
    File& file = file_of(one.fd);
    file.lock.lock();
    file.dirty.first->activity = buffer::PageActivity::Loading;
    file.lock.unlock();
    {
        const Beside other([&] {
            file.lock.lock();
            CHECK(buffer::write_oldest(file, true) == 0);
            file.lock.unlock();
        });
        CHECK(other.waits());
        file.lock.lock();
        file.dirty.first->activity = buffer::PageActivity::No;
        file.change_condition.notify_all();
        file.lock.unlock();
    }
    CHECK(buffer::has_dirty_pages(one.fd));  // who waited looks again what there is to do
    file.lock.lock();
    CHECK(buffer::write_oldest(file, true) == 0);
    file.lock.unlock();
    CHECK_FALSE(buffer::has_dirty_pages(one.fd));
    CHECK(contents(one.path) == one.text);
}
