// SPDX-License-Identifier: Apache-2.0
// The buffer as its users see it: the intercepted calls, and the tests, which use it without preloading anything.
#pragma once

#include "buffer/passing.hpp"
#include "system/critical.hpp"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <cstddef>
#include <cstdint>

namespace sonde::buffer {

/// The calls that reach the storage. Like those of libc: -1 and errno.
struct Below {
    ssize_t (*pread)(int, void*, std::size_t, off64_t) = nullptr;
    ssize_t (*pwrite)(int, const void*, std::size_t, off64_t) = nullptr;
};

/// Before anything else. `report` is a descriptor for reports to people, or -1; `lines` a folder that receives the same
/// as JSON, one file a process, or null.
void start(const Below& below, settings::Settings& settings, int report, const char* lines) noexcept;
/// A descriptor that we opened for ourselves.
bool is_private(int fd) noexcept;

/// Descriptors at or above this are never buffered.
inline constexpr int most_descriptors = 1 << 20;
/// All slots empty until a file is adopted. Read without a lock: an empty slot means "not ours".
extern std::atomic<Description*>* table;

inline bool in_table(int fd) noexcept {
    return static_cast<unsigned>(fd) < most_descriptors && table != nullptr &&
           table[fd].load(std::memory_order_acquire) != nullptr;
}
/// The same for calls of the program, not of somebody below us.
inline bool watched(int fd) noexcept {
    return in_table(fd) && !system::Critical::inside();
}
/// True while any file is known, so that calls on paths can be quick when none is.
bool any() noexcept;
/// No descriptor above this was ever ours.
int highest_descriptor() noexcept;

// --- the life of descriptors ---
/// `fd` has just been opened with `flags` as `path`. Adopts it when a rule covers it, or when its file is known
/// already. With a `reason` its file is not buffered as long as the descriptor is open.
void adopt(int fd, int flags, const char* path, const char* reason = nullptr) noexcept;
/// Before close(fd), dup2(x, fd) and the like. 0, or the error (positive errno) that close() must report.
int detach(int fd) noexcept;
/// After `made` became a duplicate of `fd`. Descriptors 0 to 2 belong to stdio: the file is let go for good.
void duplicated(int fd, int made) noexcept;
/// Buffering of this file ends for good; the reason is for the report.
void let_go(int fd, const char* reason) noexcept;
void let_go_of(dev_t device, ino_t inode, const char* reason) noexcept;
/// The program locks a part of the file for its process.
void note_lock(int fd) noexcept;
/// fcntl(F_SETFL) is about to change the flags.
void flags_change(int fd, int flags) noexcept;

// --- operations ---
struct Vector {
    char* data;
    std::size_t bytes;
};
/// Result of an operation that the buffer may leave to the kernel.
struct Answer {
    bool done;      ///< false: make the real call with pass()
    File* passing;  ///< counted as on its way to the kernel
    ssize_t value;  ///< >= 0, or a negative errno
};
inline constexpr std::int64_t here = -1;  ///< at the offset of the description, which moves
/// The quick way for a file that sleeps, when this succeeds: make the real call, then arrived().
inline Place* go_past(int fd) noexcept {
    const Description* description = table[fd].load(std::memory_order_acquire);
    return description != nullptr ? go_past(description->file.load(std::memory_order_acquire)) : nullptr;
}
Answer read(int fd, const Vector* parts, std::size_t count, std::int64_t at) noexcept;
Answer write(int fd, const Vector* parts, std::size_t count, std::int64_t at) noexcept;
Answer seek(int fd, std::int64_t offset, int whence) noexcept;
/// Makes the real call of an answer that was not done. No cancellation in between: the file counts who is on the way.
template <class Real>
auto pass(const Answer& answer, Real real) noexcept(false) {
    if (answer.passing == nullptr) {
        return real();
    }
    int cancel = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    const auto result = real();
    answer.passing->passing.fetch_sub(1, std::memory_order_seq_cst);
    pthread_setcancelstate(cancel, nullptr);
    return result;
}
/// fsync and its kin: hands everything to the kernel; 0 or the error to report. `quiet`: the rule says ignoreflush.
int flush(int fd, bool& quiet) noexcept;
/// Dirty data of one file, or of all files, to the kernel (not to the disk). Errors wait for who must be told.
void hand_to_kernel(int fd) noexcept;
void flush_inode(dev_t device, ino_t inode) noexcept;
void flush_all() noexcept;
/// True when the file of this descriptor (or inode) holds data that the kernel does not have.
bool holds_dirty(int fd) noexcept;
bool inode_holds_dirty(dev_t device, ino_t inode) noexcept;

/// While this lives, the kernel has the truth about the file: data, size, offsets. For all calls that we do not do
/// ourselves. Other threads' calls go to the kernel too.
class Around {
 public:
    explicit Around(int fd) noexcept;
    Around(dev_t device, ino_t inode) noexcept;
    ~Around();
    Around(const Around&) = delete;
    Around& operator=(const Around&) = delete;

 private:
    void enter(File* file) noexcept;
    File* file_ = nullptr;
    std::uint32_t generation_ = 0;
    int cancel_ = 0;  ///< a thread that is canceled meanwhile would leave the file asleep for good
};

// --- processes ---
enum class Child {
    Copy,       ///< fork: a second process shares every offset from now on
    Program,    ///< posix_spawn and the like without file actions: what is close-on-exec stays ours
    Vanishing,  ///< exec: we are gone when it succeeds
};
/// Flushes all, gives offsets to the kernel, lets go of what the child will share.
void before_child(Child kind) noexcept;
/// Around fork(): between these two no other thread opens or closes. `child` is true in the new process.
void fork_prepare() noexcept;
void fork_done(bool child) noexcept;
/// No file is taken on from now on (an I/O ring of the program may work behind our back), and all are let go.
void retire(const char* reason) noexcept;
/// The process is about to end: flush, and write through from now on. Does not wait long for locks that others hold.
void finish() noexcept;
/// Final report; once.
void report_at_end() noexcept;
/// setrlimit(RLIMIT_FSIZE) may have changed.
void read_limits() noexcept;

}  // namespace sonde::buffer
