// SPDX-License-Identifier: Apache-2.0
// Tests claims on files between processes of a node: locks on bytes of a small file, seen from another process.
#include "guards/node_locks.hpp"

#include "dirty_file.hpp"

#include "model/state.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <string>
#include <vector>

using namespace under_test;
using buffer::Mode;

namespace {

constexpr off64_t to_sign = 1LL << 60;

/// Returns the byte of the lock file that stands for a file.
off64_t byte_of(const struct stat& file) {
    const std::uint64_t begin = static_cast<std::uint64_t>(file.st_dev) * 0xC2B2AE3D27D4EB4FULL;
    return static_cast<off64_t>((begin + static_cast<std::uint64_t>(file.st_ino)) % (1ULL << 60U));
}

off64_t byte_of(const std::string& path) {
    struct stat got {};
    REQUIRE(stat(path.c_str(), &got) == 0);
    return byte_of(got);
}

/// Returns the descriptor of the lock file; -1 if it is not open.
int lock_file() {
    char name[PATH_MAX];
    for (int fd = 0; fd < 4096; ++fd) {
        const std::string link = "/proc/self/fd/" + std::to_string(fd);
        const ssize_t length = buffer::is_own_descriptor(fd) ? readlink(link.c_str(), name, sizeof(name)) : -1;
        if (length > 0 &&
            std::string(name, static_cast<std::size_t>(length)).rfind("/dev/shm/sonde-preload-", 0) == 0) {
            return fd;
        }
    }
    return -1;
}

/// Locks by another open file description conflict with ours as those of another process do.
class Stranger {
 public:
    /// Must be created after the first file was opened, because the lock file exists only then.
    Stranger() {
        if (const int fd = lock_file(); fd >= 0) {
            fd_ = open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR);
        }
    }
    ~Stranger() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;

    bool there() const { return fd_ >= 0; }
    /// Returns whether a lock of this kind on a byte could be acquired.
    bool could(short kind, off64_t byte) const {
        struct flock64 answer = of(kind, byte);
        REQUIRE(fcntl(fd_, F_OFD_GETLK, &answer) == 0);
        return answer.l_type == F_UNLCK;
    }
    void take(short kind, off64_t byte) const {
        struct flock64 requested = of(kind, byte);
        REQUIRE(fcntl(fd_, F_OFD_SETLK, &requested) == 0);
    }

 private:
    static struct flock64 of(short kind, off64_t byte) {
        struct flock64 lock {};
        lock.l_type = kind;
        lock.l_whence = SEEK_SET;
        lock.l_start = byte;
        lock.l_len = 1;
        return lock;
    }
    int fd_ = -1;
};

/// Returns whether this machine has shared memory, where the lock file is.
bool locks_are_there() {
    const Held one(quiet);
    return Stranger().there();
}

}  // namespace

TEST_CASE("buffered_file_holds_one_node_lock_byte") {
    if (!locks_are_there()) {
        MESSAGE("no shared memory here");
        return;
    }
    Held one(quiet);
    const Stranger other;
    const off64_t byte = byte_of(one.path);
    CHECK_FALSE(other.could(F_RDLCK, byte));
    CHECK(other.could(F_WRLCK, byte + to_sign));
    // Beside it are bytes of other files. Two of ours that were made one after the other, so that nobody else has them:
    std::vector<std::string> paths;
    for (int i = 0; i < 64; ++i) {
        paths.push_back(one.folder.path + "/" + std::to_string(i));
        close(open(paths.back().c_str(), O_CREAT | O_RDWR, 0644));
    }
    for (std::size_t i = 0; i + 1 < paths.size(); ++i) {
        if (byte_of(paths[i]) + 1 == byte_of(paths[i + 1])) {
            const int first = open_buffered(paths[i], O_RDWR);
            CHECK_FALSE(other.could(F_RDLCK, byte_of(paths[i])));
            CHECK(other.could(F_WRLCK, byte_of(paths[i + 1])));
            CHECK(close_buffered(first) == 0);
            CHECK(other.could(F_WRLCK, byte_of(paths[i])));
            const int second = open_buffered(paths[i + 1], O_RDONLY);
            CHECK(other.could(F_RDLCK, byte_of(paths[i + 1])));
            CHECK_FALSE(other.could(F_WRLCK, byte_of(paths[i + 1])));
            CHECK(other.could(F_WRLCK, byte_of(paths[i])));
            CHECK(close_buffered(second) == 0);
            break;
        }
    }
}

TEST_CASE("second_user_of_written_file_signs_and_is_not_buffered") {
    if (!locks_are_there()) {
        return;
    }
    const Folder folder;
    use(quiet);
    const std::string path = folder.path + "/data";
    close(open(path.c_str(), O_CREAT | O_RDWR, 0644));
    const Stranger other;
    const off64_t byte = byte_of(path);
    const auto opened = [&](int flags) {
        const int fd = open(path.c_str(), flags);
        buffer::adopt_descriptor({.fd = fd, .flags = flags, .path = path.c_str()});
        return fd;
    };
    for (const auto& [theirs, ours, buffered] :
         {std::tuple{F_WRLCK, O_RDONLY, false}, {F_RDLCK, O_RDWR, false}, {F_RDLCK, O_RDONLY, true}}) {
        CAPTURE(theirs);
        CAPTURE(ours);
        other.take(static_cast<short>(theirs), byte);
        const int fd = opened(ours);
        CHECK((mode_of(fd) == Mode::Active) == buffered);
        CHECK(why(fd) == (buffered ? "" : "another process on this node uses it too"));
        CHECK(other.could(F_WRLCK, byte + to_sign) == buffered);
        CHECK(close_buffered(fd) == 0);
        CHECK(other.could(F_WRLCK, byte + to_sign));
    }
    other.take(F_UNLCK, byte);
}

TEST_CASE("sign_of_second_user_releases_file_at_next_look") {
    if (!locks_are_there()) {
        return;
    }
    Held one(quiet);
    const Stranger other;
    const off64_t byte = byte_of(one.path);
    const std::string neighbor_path = one.folder.path + "/beside";
    close(open(neighbor_path.c_str(), O_CREAT | O_RDWR, 0644));
    other.take(F_RDLCK, byte_of(neighbor_path) + to_sign);
    buffer::walk_over_files();
    CHECK(mode_of(one.fd) == Mode::Active);
    other.take(F_RDLCK, byte + to_sign);
    CHECK(buffer::is_claimed_by_others(file_of(one.fd)));
    buffer::walk_over_files();
    CHECK(why(one.fd) == "another process on this node uses it too");
    CHECK(contents(one.path) == one.text);
    // A file whose sign is set when it is opened is not buffered, although no process holds its byte.
    const std::string path = one.folder.path + "/next";
    close(open(path.c_str(), O_CREAT | O_RDWR, 0644));
    other.take(F_RDLCK, byte_of(path) + to_sign);
    const int next = open(path.c_str(), O_RDWR);
    buffer::adopt_descriptor({.fd = next, .flags = O_RDWR, .path = path.c_str()});
    CHECK(mode_of(next) == Mode::Released);
    CHECK(close_buffered(next) == 0);
}

TEST_CASE("node_locks_move_or_close_with_their_descriptor") {
    if (!locks_are_there()) {
        return;
    }
    const Folder folder;
    const std::string path = folder.path + "/data";
    use(quiet);
    CHECK(in_child([&] {
        close_buffered(open_buffered(folder.path + "/first", O_RDWR | O_CREAT));  // only then the locks are there
        const int before = lock_file();
        buffer::move_own_descriptor(before);
        const int moved = lock_file();
        if (before < 0 || moved < 0 || moved == before || dup2(open("/dev/null", O_RDWR), before) != before) {
            return false;
        }
        open_buffered(path, O_RDWR | O_CREAT);
        return !Stranger().could(F_RDLCK, byte_of(path));
    }));
    CHECK(in_child([&] {
        open_buffered(path, O_RDWR | O_CREAT);
        return buffer::close_node_locks() && !buffer::close_node_locks() && lock_file() == -1;
    }));
}
