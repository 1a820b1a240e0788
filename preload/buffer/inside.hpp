// SPDX-License-Identifier: Apache-2.0
// What the files of the buffer share among themselves. Unless said otherwise the lock of the file is held.
#pragma once

#include "buffer/buffer.hpp"
#include "system/memory.hpp"

#include <pthread.h>
#include <cerrno>

namespace sonde::buffer {

struct State {
    Below below;
    settings::Settings* settings = nullptr;
    int report = -1;
    const char* lines_folder = nullptr;
    int lines = -1;  ///< opened with the first line
    long lines_pid = 0;
    bool reported = false;
    system::Lock files_lock;  ///< the table of files; taken before, never after, the lock of a file
    static constexpr std::uint32_t file_buckets = 1024;
    File* files[file_buckets] = {};
    std::atomic<std::uint32_t> files_known{0};
    system::Slab<File> file_slab;
    system::Slab<Description> description_slab;
    system::Slab<Page> page_slab;
    std::atomic<std::uint64_t> memory_used{0};
    std::atomic<std::uint64_t> memory_most{0};
    std::atomic<std::uint64_t> size_limit{~0ULL};  ///< RLIMIT_FSIZE
    std::atomic<bool> retired{false};
    std::atomic<bool> ended{false};
    std::uint64_t late_writes = 0;
    int ring_refused = 0;  ///< why engine=uring is not what works here: an errno
    bool ring_told = false;
    std::atomic<bool> strangers{false};  ///< files were opened that no rule covers
};
extern State state;

/// Around every call below: the lock is given back, the thread cannot be canceled while it owns things, errno of the
/// program is kept, and the time is counted.
class Outside {
 public:
    Outside(File& file, std::uint64_t* waited) noexcept;
    ~Outside();
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;
    std::uint64_t spent_ns = 0;  ///< after end()
    void end() noexcept;

 private:
    File& file_;
    std::uint64_t* waited_;
    std::uint64_t began_;
    int cancel_ = 0;
    int errno_;
    bool ended_ = false;
};
/// Waits for a change of the file; the time counts as waiting.
void wait_for_change(File& file) noexcept;

/// Our own descriptors begin here, where a program that counts on the lowest free number does not see them.
inline constexpr int first_private = 700;
void note_private(int fd, bool open) noexcept;
extern std::atomic<int> highest;  ///< no descriptor above this was ever ours

// states.cpp
/// No new operation gets in, none is under way, no worker is at it. Check the mode afterwards.
void close_gate(File& file) noexcept;
void open_gate(File& file) noexcept;
/// Active to Asleep: everything to the kernel. `calls`: 0 = until wake_up(), else that many calls later.
void fall_asleep(File& file) noexcept;
void sleep_for(File& file, std::int32_t calls) noexcept;
void wake_up(File& file) noexcept;
void through_for_good(File& file, const char* reason) noexcept;
/// When somebody else has appended to a file that was said to be ours: lets go of it. What both wrote is in the file.
void heed_growth(File& file) noexcept;
inline constexpr const char* why_grown = "somebody else wrote to it although append=own says that nobody does";
/// With `appends`, after `bytes` were written, whereupon the kernel's file had `size`: that is ours alone, or it grew.
void note_landed(File& file, std::uint64_t bytes, std::int64_t size) noexcept;

// files.cpp
File* locked_file(int fd, Description*& description) noexcept;
File* find_file(dev_t device, ino_t inode) noexcept;  ///< locked, or nullptr
/// These four with the table of files locked. The file of an open descriptor, locked; made when a rule covers it.
File* known_or_new_file(int fd, const struct stat& got, settings::Rule* rule, const char* path) noexcept;
/// True when the rule wants the pages of a closed file to stay for the next open.
bool keep_for_reopening(File& file, int fd) noexcept;
/// Back to the state of a fresh object, and unlocked.
void unmake_file(File& file) noexcept;
void choose_descriptors(File& file) noexcept;
/// What the kernel says the size behind a descriptor is, or -1.
std::int64_t size_below(int fd) noexcept;
void refresh_size(File& file) noexcept;
/// Calls `visit(file)` for every known file with its lock held (or not at all, when it is not to be had in time).
void for_each_file(void (*visit)(File&), std::int64_t lock_limit_ns = -1) noexcept;

// pages.cpp
Page* find_page(File& file, std::int64_t index) noexcept;
/// A page for `index`, newest in use. `again` means that the lock was given back: look again. nullptr without `again`:
/// no memory for it.
Page* new_page(File& file, std::int64_t index, bool& again, bool may_wait = true) noexcept;
void touch(File& file, Page& page) noexcept;
void drop_page(File& file, Page& page) noexcept;  ///< its dirty bytes are forgotten
void drop_clean(File& file) noexcept;
void drop_all(File& file) noexcept;
void pages_after_fork() noexcept;
bool make_buckets(File& file) noexcept;
void free_buckets(File& file) noexcept;
/// Fills the gaps of [begin, end) from storage. 0 or a negative errno. Gives the lock back while it reads.
int load(File& file, Page& page, std::uint32_t begin, std::uint32_t end, bool program_waits) noexcept;

// flushing.cpp
void note_dirty(File& file, Page& page) noexcept;
/// What could not be written is the oldest again.
void note_still_dirty(File& file, Page& page) noexcept;
void forget_dirty(File& file, Page& page) noexcept;
/// Writes the oldest dirty page. 0 or a negative errno. Gives the lock back while it writes.
int write_oldest(File& file, bool program_waits) noexcept;
/// Until nothing is dirty, or the first error.
int flush_file(File& file) noexcept;
void keep_error(File& file, int error) noexcept;
bool take_error(File& file, Description& description, int& error) noexcept;
bool space_is_low(File& file) noexcept;

// ahead.cpp
struct Move {
    bool local = false;  ///< part of a stream, or near what is held: whole pages pay
    bool backward = false;
    bool dense = false;       ///< part of a stream whose calls lie close together, or overlap
    bool straight = false;    ///< too large to gain from a copy in between, on storage as fast as memory
    std::uint64_t reach = 0;  ///< bytes worth loading from here on, in the direction of the stream
    std::uint64_t fresh = 0;  ///< bytes of this call that the one before did not touch
};
Move follow(Stream& stream, std::int64_t begin, std::int64_t end, std::uint32_t page_size) noexcept;
bool worth_a_guess(File& file, std::int64_t index) noexcept;
void plan_ahead(File& file, const Stream& stream, const Move& move, std::int64_t begin, std::int64_t end) noexcept;
void used_ahead(File& file, Page& page) noexcept;
void wasted_ahead(File& file) noexcept;
/// A call of the program went straight to storage: its `bytes` that were not there before took `ns`.
void note_call(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept;
/// A transfer of ours of `bytes` took `ns`.
void note_transfer(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept;
/// What a call of [begin, end) through this description is part of.
Move judge(File& file, Stream& stream, std::int64_t begin, std::int64_t end) noexcept;
/// Counts a call for the question whether buffering pays; true when the file should go to sleep.
bool count_call(File& file, bool hit) noexcept;
/// Calls of the next sleep of a file whose last one was followed by nothing better.
std::uint32_t longer_sleep(const File& file) noexcept;

// transfer.cpp
/// `bytes` at `at`, page by page. What was moved, also when an error ends it early, or a negative errno. `hit` becomes
/// false when storage had to be asked.
ssize_t read_run(File& file, const Move& move, char* to, std::size_t bytes, std::int64_t at, bool& hit) noexcept;
ssize_t write_run(File& file, const Move& move, const char* from, std::size_t bytes, std::int64_t at,
                  bool& hit) noexcept;

// workers.cpp
void hand_to_workers(File& file) noexcept;
void workers_after_fork() noexcept;
/// One piece of work for this file; true when there is more. For the workers and for tests without threads.
bool work_once(File& file) noexcept;

// choosing.cpp
/// For a file that has just become known: looked at for calls_of_a_watch calls, or what was chosen for it before.
void begin_watch(File& file) noexcept;
/// Chooses, and switches the file on or puts it to sleep until another look.
void end_watch(File& file) noexcept;
void choosing_after_fork() noexcept;

// node_locks.cpp
/// True when this process may buffer the file: no other one on this node writes it, or, if we write, uses it at all.
bool claim(const File& file, bool writes) noexcept;
void disclaim(const File& file) noexcept;
/// Another process has come since, and one of us writes.
bool visited(const File& file) noexcept;
void node_locks_after_fork() noexcept;
/// Lets go of a file that another process uses.
void yield_to_others(File& file) noexcept;

// report.cpp
void report_file(File& file) noexcept;

}  // namespace sonde::buffer
