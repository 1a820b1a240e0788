// SPDX-License-Identifier: Apache-2.0
// Between buffered, asleep and let go; and what happens to all files when processes begin and end.
#include "buffer/inside.hpp"
#include "system/clock.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace sonde::buffer {

namespace {

/// Calls that go straight through before buffering is tried again after a call that was not for us.
constexpr std::int32_t short_sleep = 64;

void sync_offsets(File& file) noexcept {
    for (Description* one = file.descriptions; one != nullptr; one = one->next) {
        raw::call(SYS_lseek, one->fd, one->offset, SEEK_SET);
    }
}

bool stays_closed_in_child(const File& file) noexcept {
    for (int fd = 0; fd <= highest.load(std::memory_order_relaxed); ++fd) {
        const Description* one = table[fd].load(std::memory_order_relaxed);
        if (one != nullptr && one->file.load(std::memory_order_relaxed) == &file &&
            (raw::call(SYS_fcntl, fd, F_GETFD) & FD_CLOEXEC) == 0) {
            return false;
        }
    }
    return true;
}

}  // namespace

Outside::Outside(File& file, std::uint64_t* waited) noexcept
    : file_(file), waited_(waited), began_(system::now_ns()), errno_(errno) {
    file.lock.unlock();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
}

void Outside::end() noexcept {
    if (ended_) {
        return;
    }
    ended_ = true;
    pthread_setcancelstate(cancel_, nullptr);
    errno = errno_;
    file_.lock.lock();
    spent_ns = system::now_ns() - began_;
    if (waited_ != nullptr) {
        *waited_ += spent_ns;
    }
}

Outside::~Outside() {
    end();
}

void wait_for_change(File& file) noexcept {
    const std::uint64_t began = system::now_ns();
    file.changed.wait(file.lock);
    file.statistics.wait_ns += system::now_ns() - began;
}

void close_gate(File& file) noexcept {
    while (file.gate) {
        wait_for_change(file);
    }
    file.gate = true;
    while (file.running > 0 || file.in_flight > 0) {
        wait_for_change(file);
    }
}

void open_gate(File& file) noexcept {
    file.gate = false;
    file.changed.tell();
}

void fall_asleep(File& file) noexcept {
    close_gate(file);
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        flush_file(file);
        drop_all(file);
        sync_offsets(file);
        file.mode.store(Mode::Asleep, std::memory_order_seq_cst);
    }
    open_gate(file);
}

void sleep_for(File& file, std::int32_t calls) noexcept {
    fall_asleep(file);
    if (file.mode.load(std::memory_order_relaxed) == Mode::Asleep) {
        file.dormant = true;
        file.dormant_left.store(calls, std::memory_order_relaxed);
    }
}

namespace {

/// Waits a little for calls that are on their way to the kernel. One may take long, and one may be our own, which a
/// handler of the program has interrupted or left for good with longjmp.
bool all_have_arrived(File& file) noexcept {
    constexpr int most_tries = 200;
    int left = on_the_way(file);
    for (int tries = 0; left > 0 && tries < most_tries; ++tries) {
        if (own_place != nullptr && own_place->file.load(std::memory_order_relaxed) == &file) {
            return false;
        }
        file.changed.wait(file.lock, 50'000);
        left = on_the_way(file);
    }
    return left == 0;
}

/// Asleep for some calls, and for more each time.
void doze(File& file) noexcept {
    file.dormant_calls = longer_sleep(file);
    file.dormant = true;
    file.dormant_left.store(static_cast<std::int32_t>(file.dormant_calls), std::memory_order_relaxed);
}

}  // namespace

void wake_up(File& file) noexcept {
    file.dormant = false;
    if (file.mode.load(std::memory_order_relaxed) != Mode::Asleep || file.around > 0) {
        return;
    }
    while (file.gate) {
        wait_for_change(file);
    }
    if (file.mode.load(std::memory_order_relaxed) != Mode::Asleep) {
        return;  // another thread was quicker
    }
    if (file.grew) {
        heed_growth(file);
        return;
    }
    file.gate = true;
    file.mode.store(Mode::Active, std::memory_order_seq_cst);
    if (!all_have_arrived(file)) {
        file.mode.store(Mode::Asleep, std::memory_order_seq_cst);
        doze(file);
        open_gate(file);
        return;
    }
    for (Description* one = file.descriptions; one != nullptr; one = one->next) {
        const long offset = raw::call(SYS_lseek, one->fd, 0, SEEK_CUR);
        one->offset = offset >= 0 ? offset : one->offset;
    }
    struct stat got {};
    if (file.descriptions != nullptr && raw::call(SYS_fstat, file.descriptions->fd, raw::number(&got)) == 0) {
        file.size = file.landed = got.st_size;
    }
    open_gate(file);
}

void through_for_good(File& file, const char* reason) noexcept {
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        fall_asleep(file);
    }
    if (file.mode.load(std::memory_order_relaxed) == Mode::Asleep) {
        file.mode.store(Mode::Through, std::memory_order_seq_cst);
        file.why_through = reason;
    }
}

void heed_growth(File& file) noexcept {
    if (file.grew && file.mode.load(std::memory_order_relaxed) != Mode::Through) {
        through_for_good(file, why_grown);
    }
}

void note_landed(File& file, std::uint64_t bytes, std::int64_t size) noexcept {
    file.landed += static_cast<std::int64_t>(bytes);
    if (size != file.landed) {
        file.grew = true;
        file.landed = size;
    }
}

void yield_to_others(File& file) noexcept {
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active && visited(file)) {
        through_for_good(file, "another process on this node uses it too");
    }
}

Around::Around(int fd) noexcept {
    const system::Critical critical;
    Description* description = nullptr;
    File* file = in_table(fd) ? locked_file(fd, description) : nullptr;
    enter(file);
}

Around::Around(dev_t device, ino_t inode) noexcept {
    const system::Critical critical;
    enter(find_file(device, inode));
}

void Around::enter(File* file) noexcept {
    if (file == nullptr) {
        return;
    }
    const Mode mode = file->mode.load(std::memory_order_relaxed);
    if (mode == Mode::Active || mode == Mode::Asleep) {
        ++file->around;
        if (mode == Mode::Active) {
            ++file->statistics.given_up;
            fall_asleep(*file);
        }
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
        file_ = file;
        generation_ = file->generation;
    }
    file->lock.unlock();
}

Around::~Around() {
    const system::Critical critical;
    if (file_ == nullptr) {
        return;
    }
    const int kept = errno;
    file_->lock.lock();
    if (file_->generation == generation_) {
        --file_->around;
        if (file_->around == 0 && !file_->dormant && !state.ended.load(std::memory_order_relaxed)) {
            wake_up(*file_);
        }
    }
    file_->lock.unlock();
    pthread_setcancelstate(cancel_, nullptr);
    errno = kept;
}

int flush(int fd, bool& quiet) noexcept {
    const system::Critical critical;
    quiet = false;
    Description* description = nullptr;
    File* file = in_table(fd) ? locked_file(fd, description) : nullptr;
    if (file == nullptr) {
        return 0;
    }
    int error = 0;
    ++file->statistics.syncs;
    if (file->mode.load(std::memory_order_relaxed) == Mode::Active) {
        flush_file(*file);
        heed_growth(*file);
    }
    take_error(*file, *description, error);
    quiet = file->rule->ignore_flush && file->mode.load(std::memory_order_relaxed) == Mode::Active;
    file->lock.unlock();
    return error;
}

void hand_to_kernel(int fd) noexcept {
    const system::Critical critical;
    Description* description = nullptr;
    if (File* file = in_table(fd) ? locked_file(fd, description) : nullptr) {
        flush_file(*file);
        heed_growth(*file);
        file->lock.unlock();
    }
}

void flush_inode(dev_t device, ino_t inode) noexcept {
    const system::Critical critical;
    if (File* file = find_file(device, inode)) {
        flush_file(*file);
        heed_growth(*file);
        file->lock.unlock();
    }
}

void flush_all() noexcept {
    const system::Critical critical;
    system::Hold hold(state.files_lock);
    for_each_file([](File& file) { flush_file(file); });
}

bool holds_dirty(int fd) noexcept {
    const system::Critical critical;
    Description* description = nullptr;
    File* file = in_table(fd) ? locked_file(fd, description) : nullptr;
    if (file == nullptr) {
        return false;
    }
    const bool dirty = file->dirty_first != nullptr || file->writing;
    file->lock.unlock();
    return dirty;
}

bool inode_holds_dirty(dev_t device, ino_t inode) noexcept {
    const system::Critical critical;
    File* file = find_file(device, inode);
    if (file == nullptr) {
        return false;
    }
    const bool dirty = file->dirty_first != nullptr || file->writing;
    file->lock.unlock();
    return dirty;
}

void before_child(Child kind) noexcept {
    const system::Critical critical;
    if (!any()) {
        return;
    }
    system::Hold hold(state.files_lock);
    switch (kind) {
        case Child::Copy:
            for_each_file([](File& file) { through_for_good(file, "a child process shares it"); });
            break;
        case Child::Program:
            for_each_file([](File& file) {
                if (stays_closed_in_child(file)) {
                    flush_file(file);
                } else {
                    through_for_good(file, "a child process inherited it");
                }
            });
            break;
        case Child::Vanishing:
            for_each_file([](File& file) {
                if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
                    fall_asleep(file);
                    file.dormant = true;
                    file.dormant_left.store(short_sleep, std::memory_order_relaxed);
                }
            });
            break;
    }
}

void fork_prepare() noexcept {
    ++system::thread_state.depth;  // until fork_done(), in both processes
    before_child(Child::Copy);
    state.files_lock.lock();
}

void fork_done(bool child) noexcept {
    if (child) {
        // Other threads of the parent may have held any of these; all files are let go, so what they guard is whole.
        state.files_lock.reset();
        state.file_slab.reset_lock();
        state.description_slab.reset_lock();
        state.page_slab.reset_lock();
        pages_after_fork();
        for (File* first : state.files) {
            for (File* file = first; file != nullptr; file = file->in_bucket) {
                file->lock.reset();
                file->changed.reset();
                file->passing.store(0, std::memory_order_relaxed);
                file->running = file->in_flight = 0;
                file->gate = false;
                file->statistics = {};
            }
        }
        choosing_after_fork();
        places_after_fork();
        node_locks_after_fork();
        workers_after_fork();
    } else {
        state.files_lock.unlock();
    }
    --system::thread_state.depth;
    if (system::thread_state.depth == 0 && system::thread_state.put_off) {
        system::let_signals_in();
    }
}

void retire(const char* reason) noexcept {
    const system::Critical critical;
    if (state.retired.exchange(true)) {
        return;
    }
    static const char* why;
    why = reason;
    system::Hold hold(state.files_lock);
    for_each_file([](File& file) { through_for_good(file, why); });
}

void finish() noexcept {
    const system::Critical critical;
    if (table == nullptr) {
        return;
    }
    state.ended.store(true);
    constexpr std::int64_t patience_ns = 2'000'000'000;
    if (!any() || !state.files_lock.try_lock(patience_ns)) {
        return;
    }
    for_each_file(
        [](File& file) {
            flush_file(file);
            if (file.running == 0 && file.in_flight == 0 && !file.gate) {
                through_for_good(file, nullptr);
            }
        },
        patience_ns);
    state.files_lock.unlock();
}

void read_limits() noexcept {
    struct rlimit limit {};
    if (raw::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, raw::number(&limit)) == 0) {
        state.size_limit.store(limit.rlim_cur, std::memory_order_relaxed);
    }
}

}  // namespace sonde::buffer
