// SPDX-License-Identifier: Apache-2.0
// Reading, writing and seeking: the calls of the program that the buffer answers itself.
#include "buffer/inside.hpp"
#include "system/clock.hpp"

#include <algorithm>
#include <climits>
#include <fcntl.h>
#include <unistd.h>

namespace sonde::buffer {

namespace {

/// No offset that a buffered file reaches may be refused by the kernel later; ext4 ends at 16 TiB.
constexpr std::int64_t farthest = 1LL << 43U;
constexpr std::uint64_t space_check_bytes = 16U << 20U;

/// One call of the program on one file, between the moment it is let in and its end.
struct Call {
    int fd;
    bool writes;
    File* file = nullptr;
    Description* description = nullptr;
    bool moves = false;  ///< uses the offset of the description
    Answer answer{false, nullptr, 0};
};

/// True when the call goes on here, with the lock of the file held; false when call.answer says what to do.
bool let_in(Call& call) noexcept {
    while (true) {
        Description* description = table[call.fd].load(std::memory_order_acquire);
        File* file = description != nullptr ? description->file.load(std::memory_order_acquire) : nullptr;
        if (file == nullptr) {
            return false;
        }
        const Mode mode = file->mode.load(std::memory_order_acquire);
        if (mode == Mode::Through) {
            if (call.writes && state.ended.load(std::memory_order_relaxed)) {
                ++state.late_writes;
            }
            return false;
        }
        if (mode == Mode::Asleep) {
            file->passing.fetch_add(1, std::memory_order_seq_cst);
            if (file->mode.load(std::memory_order_seq_cst) == Mode::Asleep) {
                const std::int32_t left = file->dormant_left.load(std::memory_order_relaxed) - 1;
                file->dormant_left.store(left, std::memory_order_relaxed);
                if (left > 0 || !file->dormant) {
                    call.answer.passing = file;
                    return false;
                }
                file->passing.fetch_sub(1, std::memory_order_seq_cst);
                if (File* locked = locked_file(call.fd, description)) {
                    wake_up(*locked);
                    const bool held = locked->mode.load(std::memory_order_relaxed) == Mode::Asleep;
                    locked->dormant = locked->dormant || held;  // somebody must see it as it is: try again later
                    locked->dormant_left.store(64, std::memory_order_relaxed);
                    locked->lock.unlock();
                }
            } else {
                file->passing.fetch_sub(1, std::memory_order_seq_cst);
            }
            continue;
        }
        call.file = locked_file(call.fd, call.description);
        if (call.file == nullptr) {
            return false;
        }
        File& held = *call.file;
        if (held.gate || (call.moves && call.description->offset_busy) || (call.writes && held.writer_turn)) {
            wait_for_change(held);
            held.lock.unlock();
            continue;
        }
        if (held.mode.load(std::memory_order_relaxed) != Mode::Active) {
            held.lock.unlock();
            continue;
        }
        if (state.ended.load(std::memory_order_relaxed)) {
            through_for_good(held, nullptr);
            held.lock.unlock();
            continue;
        }
        ++held.running;
        call.description->offset_busy |= call.moves;
        held.writer_turn |= call.writes;
        return true;
    }
}

void leave(Call& call) noexcept {
    File& file = *call.file;
    --file.running;
    if (call.moves) {
        call.description->offset_busy = false;
    }
    if (call.writes) {
        file.writer_turn = false;
    }
    file.changed.tell();
}

/// The kernel does this one call, and perhaps some more; it sees everything as the program does.
Answer hand_over(Call& call, std::int32_t calls) noexcept {
    leave(call);
    ++call.file->statistics.given_up;
    sleep_for(*call.file, calls);
    const Mode mode = call.file->mode.load(std::memory_order_relaxed);
    if (mode == Mode::Asleep) {
        call.file->passing.fetch_add(1, std::memory_order_seq_cst);
        call.answer.passing = call.file;
    }
    call.file->lock.unlock();
    return call.answer;
}

// --- storage without a page in between ---

ssize_t read_straight(File& file, char* to, std::size_t bytes, std::int64_t at) noexcept {
    std::size_t done = 0;
    int error = 0;
    ++file.in_flight;
    const int fd = file.reader;
    Outside outside(file, &file.statistics.wait_ns);
    while (done < bytes) {
        const ssize_t got = state.below.pread(fd, to + done, bytes - done, at + static_cast<std::int64_t>(done));
        if (got > 0) {
            done += static_cast<std::size_t>(got);
        } else if (got == 0 || errno != EINTR) {
            error = got < 0 ? errno : 0;
            break;
        }
    }
    if (error == 0) {
        std::memset(to + done, 0, bytes - done);  // a hole that the program made by writing further on
    }
    outside.end();
    --file.in_flight;
    ++file.statistics.read.below;
    file.statistics.read.below_bytes += done;
    file.statistics.read.below_ns += outside.spent_ns;
    return error == 0 ? static_cast<ssize_t>(bytes) : done > 0 ? static_cast<ssize_t>(done) : -error;
}

/// Drops pages of [at, at + bytes) that another thread loaded meanwhile: they may hold what was there before.
void drop_range(File& file, std::int64_t at, std::size_t bytes) noexcept {
    const std::int64_t last = (at + static_cast<std::int64_t>(bytes) - 1) / file.page_size;
    for (std::int64_t index = at / file.page_size; index <= last;) {
        Page* page = file.pages > 0 ? find_page(file, index) : nullptr;
        if (page != nullptr && (page->busy == Busy::Loading || page->busy == Busy::Writing)) {
            wait_for_change(file);
            continue;
        }
        if (page != nullptr && !page->is_dirty) {
            drop_page(file, *page);
        } else if (page != nullptr) {
            page->valid = page->dirty;  // written after us, in the order of the program
        }
        ++index;
    }
}

ssize_t write_straight(File& file, const char* from, std::size_t bytes, std::int64_t at) noexcept {
    const int before = flush_file(file);  // what was written earlier arrives earlier
    if (before != 0) {
        return before;
    }
    ++file.in_flight;
    const int fd = file.writer;
    ssize_t got = 0;
    Outside outside(file, &file.statistics.wait_ns);
    do {
        got = state.below.pwrite(fd, from, bytes, at);
    } while (got < 0 && errno == EINTR);
    got = got < 0 ? -errno : got;
    outside.end();
    --file.in_flight;
    ++file.statistics.write.below;
    file.statistics.write.below_ns += outside.spent_ns;
    if (got > 0) {
        file.statistics.write.below_bytes += static_cast<std::uint64_t>(got);
        drop_range(file, at, static_cast<std::size_t>(got));
        file.size = std::max(file.size, at + got);
    }
    return got;
}

/// Bytes from `at` on that go straight: whole pages, or, when pages do not pay, all up to the next page that is held.
std::size_t straight_run(File& file, std::int64_t at, std::size_t bytes, bool pages_pay) noexcept {
    std::size_t run = 0;
    while (run < bytes) {
        const std::int64_t place = at + static_cast<std::int64_t>(run);
        const auto inside = static_cast<std::size_t>(place % file.page_size);
        const std::size_t part = std::min<std::size_t>(file.page_size - inside, bytes - run);
        const bool whole = part == file.page_size;
        if ((pages_pay && !whole) || (file.pages > 0 && find_page(file, place / file.page_size) != nullptr)) {
            break;
        }
        run += part;
    }
    return run;
}

// --- reading ---

/// The part of the page that is worth loading for a read of [begin, end) in it.
Range worth_loading(const File& file, const Move& move, std::uint32_t begin, std::uint32_t end) noexcept {
    if (!move.local) {
        return {begin, end};
    }
    if (move.reach >= file.page_size) {
        return {0, file.page_size};
    }
    const auto reach = static_cast<std::uint32_t>(move.reach);
    if (move.backward) {
        return {end > reach && end - reach < begin ? end - reach : end > reach ? begin : 0, end};
    }
    return {begin, std::max(end, std::min(file.page_size, begin + std::min(reach, file.page_size - begin)))};
}

ssize_t read_run(File& file, const Move& move, char* to, std::size_t bytes, std::int64_t at, bool& hit) noexcept {
    std::size_t done = 0;
    bool pay = move.local;
    while (done < bytes) {
        const std::int64_t place = at + static_cast<std::int64_t>(done);
        const std::int64_t index = place / file.page_size;
        const auto begin = static_cast<std::uint32_t>(place % file.page_size);
        const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(file.page_size - begin, bytes - done));
        Page* page = find_page(file, index);
        bool again = false;
        if (page == nullptr) {
            hit = false;
            pay = pay || worth_a_guess(file, index);
            const std::size_t run = straight_run(file, place, bytes - done, pay);
            if (run == 0) {
                page = new_page(file, index, again);
            }
            if (again) {
                continue;
            }
            if (page == nullptr) {  // also when there is no memory for it
                const ssize_t got = read_straight(file, to + done, run > 0 ? run : part, place);
                if (got <= 0) {
                    return done > 0 ? static_cast<ssize_t>(done) : got;
                }
                done += static_cast<std::size_t>(got);
                continue;
            }
        }
        if (page->busy == Busy::Loading) {
            hit = false;
            wait_for_change(file);
            continue;
        }
        if (!page->valid.covers(begin, begin + part)) {
            hit = false;
            if (page->busy == Busy::Writing) {
                wait_for_change(file);
                continue;
            }
            const Range want = worth_loading(file, move, begin, begin + part);
            const int error = load(file, *page, want.begin, want.end, true);
            if (error != 0) {
                return done > 0 ? static_cast<ssize_t>(done) : error;
            }
        }
        std::memcpy(to + done, page->data + begin, part);
        used_ahead(file, *page);
        touch(file, *page);
        done += part;
    }
    return static_cast<ssize_t>(done);
}

// --- writing ---

/// Room for [begin, end) in the page's lists; false when all was flushed to make some: look again.
bool room_in(File& file, Page& page, int& error) noexcept {
    if (page.dirty.has_room() && page.valid.has_room()) {
        return true;
    }
    if (!page.dirty.has_room()) {
        error = flush_file(file);
        return false;
    }
    page.valid = page.dirty;
    return true;
}

void accept(File& file, Page& page, const char* from, std::uint32_t begin, std::uint32_t part) noexcept {
    std::memcpy(page.data + begin, from, part);
    page.valid.add(begin, begin + part);
    page.dirty.add(begin, begin + part);
    if (!page.is_dirty) {
        note_dirty(file, page);
    }
    used_ahead(file, page);
    touch(file, page);
    file.size = std::max(file.size, page.index * file.page_size + begin + part);
    const bool complete = page.dirty.count() == 1 && page.dirty[0].begin == 0 && page.dirty[0].end == file.page_size;
    if (!page.full && (begin + part == file.page_size || complete)) {  // the stream goes on elsewhere
        page.full = true;
        if (file.rule->preflush > 0) {
            hand_to_workers(file);
        }
    }
}

bool write_pays(File& file, const Move& move, std::int64_t at) noexcept {
    const std::int64_t index = at / file.page_size;
    return move.local || at == file.size || (file.pages > 0 && find_page(file, index - 1) != nullptr) ||
           worth_a_guess(file, index);
}

ssize_t write_run(File& file, const Move& move, const char* from, std::size_t bytes, std::int64_t at, bool& hit) noexcept {
    std::size_t done = 0;
    while (done < bytes) {
        const std::int64_t place = at + static_cast<std::int64_t>(done);
        const std::int64_t index = place / file.page_size;
        const auto begin = static_cast<std::uint32_t>(place % file.page_size);
        const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(file.page_size - begin, bytes - done));
        Page* page = find_page(file, index);
        bool again = false;
        if (page == nullptr) {
            const std::size_t run = straight_run(file, place, bytes - done, !file.write_through && write_pays(file, move, place));
            if (run == 0) {
                page = new_page(file, index, again);
            }
            if (again) {
                continue;
            }
            if (page == nullptr) {
                hit = false;
                const ssize_t got = write_straight(file, from + done, run > 0 ? run : part, place);
                if (got <= 0) {
                    return done > 0 ? static_cast<ssize_t>(done) : got;
                }
                done += static_cast<std::size_t>(got);
                if (static_cast<std::size_t>(got) < (run > 0 ? run : part)) {
                    return static_cast<ssize_t>(done);
                }
                continue;
            }
        }
        if (page->busy == Busy::Loading || page->busy == Busy::Writing) {
            wait_for_change(file);
            continue;
        }
        if (page->busy == Busy::Queued) {
            page->busy = Busy::No;  // what would be read is being replaced
            page->ahead = false;
            --file.queued;
        }
        int error = 0;
        if (!room_in(file, *page, error)) {
            if (error != 0) {
                return done > 0 ? static_cast<ssize_t>(done) : error;
            }
            continue;
        }
        accept(file, *page, from + done, begin, part);
        done += part;
    }
    return static_cast<ssize_t>(done);
}

void count(Direction& direction, const Stream& stream, std::int64_t at, std::size_t bytes) noexcept {
    ++direction.asked;
    direction.asked_bytes += bytes;
    ++direction.sizes[size_class(bytes)];
    direction.consecutive += stream.calls > 0 && at == stream.last_end ? 1 : 0;
    direction.unaligned += at % 4096 != 0 ? 1 : 0;
}

std::size_t sum(const Vector* parts, std::size_t number) noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < number; ++i) {
        bytes += parts[i].bytes;
    }
    return bytes;
}

/// Everything the kernel would refuse, or do in a way that is not ours: it shall do it, and see what the program sees.
bool unusual(const Vector* parts, std::size_t number, std::size_t bytes, std::int64_t at) noexcept {
    for (std::size_t i = 0; i < number; ++i) {
        const auto address = reinterpret_cast<std::uintptr_t>(parts[i].data);
        if (parts[i].bytes > 0 && (address < 65536 || address > (~std::uintptr_t{0} >> 1U))) {
            return true;  // EFAULT
        }
    }
    return bytes == 0 || bytes > (1ULL << 31U) - 4096 || at > farthest - static_cast<std::int64_t>(bytes);
}

}  // namespace

Answer read(int fd, const Vector* parts, std::size_t number, std::int64_t at) noexcept {
    Call call{.fd = fd, .writes = false, .moves = at == here};
    if (!let_in(call)) {
        return call.answer;
    }
    File& file = *call.file;
    Description& description = *call.description;
    std::size_t bytes = sum(parts, number);
    const std::int64_t start = at == here ? description.offset : at;
    if (!description.reads || unusual(parts, number, bytes, start)) {
        return hand_over(call, 1);
    }
    count(file.statistics.read, description.stream, start, bytes);
    if (start + static_cast<std::int64_t>(bytes) > file.size) {
        refresh_size(file);  // another process may have appended
        bytes = static_cast<std::size_t>(std::clamp<std::int64_t>(file.size - start, 0, static_cast<std::int64_t>(bytes)));
    }
    ssize_t total = 0;
    bool hit = true;
    bool sleep = false;
    if (bytes > 0) {
        const std::int64_t end = start + static_cast<std::int64_t>(bytes);
        const Move move = follow(description.stream, start, end, file.page_size);
        plan_ahead(file, description.stream, move, start, end);
        for (std::size_t i = 0; i < number && static_cast<std::size_t>(total) < bytes; ++i) {
            const std::size_t part = std::min(parts[i].bytes, bytes - static_cast<std::size_t>(total));
            const ssize_t got = part > 0 ? read_run(file, move, parts[i].data, part, start + total, hit) : 0;
            if (got < 0 && total == 0) {
                total = got;
            }
            total += got > 0 && total >= 0 ? got : 0;
            if (got != static_cast<ssize_t>(part)) {
                break;
            }
        }
        file.statistics.read.hits += hit ? 1 : 0;
        sleep = count_call(file, hit || bytes >= file.page_size);
    }
    if (call.moves && total > 0) {
        description.offset = start + total;
    }
    leave(call);
    if (sleep) {
        sleep_for(file, static_cast<std::int32_t>(file.dormant_calls));
    }
    file.lock.unlock();
    return {true, nullptr, total};
}

Answer write(int fd, const Vector* parts, std::size_t number, std::int64_t at) noexcept {
    Call call{.fd = fd, .writes = true, .moves = at == here};
    if (!let_in(call)) {
        return call.answer;
    }
    File& file = *call.file;
    Description& description = *call.description;
    const std::size_t bytes = sum(parts, number);
    const std::int64_t start = at == here ? description.offset : at;
    const std::int64_t end = start + static_cast<std::int64_t>(bytes);
    if (!description.writes || unusual(parts, number, bytes, start) ||
        static_cast<std::uint64_t>(end) > state.size_limit.load(std::memory_order_relaxed)) {
        return hand_over(call, 1);
    }
    count(file.statistics.write, description.stream, start, bytes);
    int earlier = 0;
    ssize_t total = 0;
    bool hit = true;
    if (take_error(file, description, earlier)) {
        total = -earlier;
    } else {
        file.accepted_since_check += bytes;
        if (file.accepted_since_check >= space_check_bytes) {
            file.accepted_since_check = 0;
            file.write_through = space_is_low(file);
        }
        const Move move = follow(description.stream, start, end, file.page_size);
        for (std::size_t i = 0; i < number; ++i) {
            const ssize_t got = parts[i].bytes > 0 ? write_run(file, move, parts[i].data, parts[i].bytes, start + total, hit) : 0;
            if (got < 0) {
                total = total == 0 ? got : total;
                break;
            }
            total += got;
            if (static_cast<std::size_t>(got) < parts[i].bytes) {
                break;
            }
        }
        if (total < 0) {
            take_error(file, description, earlier);  // this call reports it
        }
    }
    file.statistics.write.hits += hit ? 1 : 0;
    const bool sleep = count_call(file, hit || bytes >= file.page_size);
    if (call.moves && total > 0) {
        description.offset = start + total;
    }
    leave(call);
    if (sleep) {
        sleep_for(file, static_cast<std::int32_t>(file.dormant_calls));
    }
    file.lock.unlock();
    return {true, nullptr, total};
}

Answer seek(int fd, std::int64_t offset, int whence) noexcept {
    Call call{.fd = fd, .writes = false, .moves = true};
    if (!let_in(call)) {
        return call.answer;
    }
    File& file = *call.file;
    Description& description = *call.description;
    if (whence == SEEK_END) {
        refresh_size(file);
    }
    const std::int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? description.offset : file.size;
    if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END) {
        return hand_over(call, 1);  // data and holes are the kernel's to know
    }
    std::int64_t target = 0;
    ssize_t result = -EINVAL;
    if (!__builtin_add_overflow(base, offset, &target) && target >= 0) {
        if (target > farthest) {
            return hand_over(call, 1);
        }
        description.offset = target;
        result = target;
    }
    ++file.statistics.seeks;
    leave(call);
    file.lock.unlock();
    return {true, nullptr, result};
}

}  // namespace sonde::buffer
