// SPDX-License-Identifier: Apache-2.0
// Names of the operating system: one system call an operation where there is one.
#include "backends/names.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace sonde::backends {
namespace {

static_assert(current_directory == AT_FDCWD);

constexpr mode_t file_mode = 0666;  // less the umask
constexpr mode_t directory_mode = 0777;

int to_result(int result) noexcept {
    return result == 0 ? 0 : -errno;
}

int open_at(Directory parent, const char* name, int flags) noexcept {
    for (;;) {
        const int descriptor = ::openat(parent, name, flags | O_CLOEXEC | O_NOFOLLOW, file_mode);
        if (descriptor >= 0) {
            return descriptor;
        }
        if (errno != EINTR) {
            return -errno;
        }
    }
}

/// After EINTR Linux has released the descriptor already.
int close_ignoring_interrupt(int descriptor) noexcept {
    return ::close(descriptor) == 0 || errno == EINTR ? 0 : -errno;
}

int write_all(int descriptor, std::span<const std::byte> content) noexcept {
    std::size_t done = 0;
    while (done < content.size()) {
        const ssize_t count =
            ::pwrite(descriptor, content.data() + done, content.size() - done, static_cast<off_t>(done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return count < 0 ? -errno : -ENOSPC;
        }
        done += static_cast<std::size_t>(count);
    }
    return 0;
}

int sync_all(int descriptor) noexcept {
    while (::fsync(descriptor) != 0) {
        if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

EntryKind get_file_kind_from_dirent_type(std::uint8_t type) noexcept {
    switch (type) {
        case DT_REG:
            return EntryKind::file;
        case DT_DIR:
            return EntryKind::directory;
        case DT_LNK:
            return EntryKind::link;
        case DT_UNKNOWN:
            return EntryKind::unknown;
        default:
            return EntryKind::other;
    }
}

EntryKind get_file_kind_from_mode(mode_t mode) noexcept {
    return S_ISREG(mode)   ? EntryKind::file
           : S_ISDIR(mode) ? EntryKind::directory
           : S_ISLNK(mode) ? EntryKind::link
                           : EntryKind::other;
}

class PosixNameOperations final : public NameOperations {
 public:
    explicit PosixNameOperations(bool direct) : direct_(direct ? O_DIRECT : 0) {}

    Directory open_directory(Directory parent, const char* name) noexcept override {
        return open_at(parent, name, O_RDONLY | O_DIRECTORY);
    }
    void close_directory(Directory directory) noexcept override { ::close(directory); }

    int make_file(Directory parent, const char* name, const NewFileOptions& options) noexcept override {
        if (options.use_mknod) {
            return to_result(::mknodat(parent, name, S_IFREG | file_mode, 0));
        }
        const int descriptor = open_at(parent, name, O_WRONLY | O_CREAT | direct_ | (options.exclusive ? O_EXCL : 0));
        if (descriptor < 0) {
            return descriptor;
        }
        int result = options.content.empty() ? 0 : write_all(descriptor, options.content);
        if (options.fsync && result == 0) {
            result = sync_all(descriptor);
        }
        const int closed = close_ignoring_interrupt(descriptor);
        return result != 0 ? result : closed;
    }
    int make_directory(Directory parent, const char* name) noexcept override {
        return to_result(::mkdirat(parent, name, directory_mode));
    }
    int stat_entry(Directory parent, const char* name, const StatOptions& options) noexcept override {
        const int follow = options.follow_links ? 0 : AT_SYMLINK_NOFOLLOW;
        if (options.use_statx) {
            struct statx attributes {};
            return to_result(
                ::statx(parent, name, follow | static_cast<int>(options.flags), options.fields, &attributes));
        }
        struct stat attributes {};
        return to_result(::fstatat(parent, name, &attributes, follow));
    }
    int read_attributes(Directory parent, const char* name, const StatOptions& options,
                        EntryAttributes& attributes) noexcept override {
        const int follow = options.follow_links ? 0 : AT_SYMLINK_NOFOLLOW;
        struct statx status {};
        if (::statx(parent, name, follow | static_cast<int>(options.flags), options.fields | STATX_TYPE, &status) !=
            0) {
            return -errno;
        }
        attributes.kind = get_file_kind_from_mode(status.stx_mode);
        attributes.bytes = status.stx_size;
        attributes.modified_ns = status.stx_mtime.tv_sec * std::int64_t{1'000'000'000} + status.stx_mtime.tv_nsec;
        return 0;
    }
    int open_close(Directory parent, const char* name) noexcept override {
        const int descriptor = open_at(parent, name, O_RDONLY);
        return descriptor < 0 ? descriptor : close_ignoring_interrupt(descriptor);
    }
    std::int64_t read_file(Directory parent, const char* name, std::span<std::byte> into) noexcept override {
        const int descriptor = open_at(parent, name, O_RDONLY | direct_);
        if (descriptor < 0) {
            return descriptor;
        }
        std::int64_t result = 0;
        while (static_cast<std::size_t>(result) < into.size()) {
            const ssize_t count =
                ::pread(descriptor, into.data() + result, into.size() - static_cast<std::size_t>(result), result);
            if (count < 0 && errno == EINTR) {
                continue;
            }
            if (count < 0) {
                result = -errno;
            }
            if (count <= 0) {
                break;
            }
            result += count;
        }
        const int closed = close_ignoring_interrupt(descriptor);
        return result < 0 || closed == 0 ? result : closed;
    }
    int rename(Directory parent, const char* name, const char* to) noexcept override {
        return to_result(::renameat(parent, name, parent, to));
    }
    int remove_file(Directory parent, const char* name) noexcept override {
        return to_result(::unlinkat(parent, name, 0));
    }
    int remove_directory(Directory parent, const char* name) noexcept override {
        return to_result(::unlinkat(parent, name, AT_REMOVEDIR));
    }

    std::int64_t read_entries(Directory directory, std::span<std::byte> buffer) noexcept override {
        const long got = ::syscall(SYS_getdents64, directory, buffer.data(), buffer.size());
        return got < 0 ? -errno : got;
    }
    bool next_entry(std::span<const std::byte> entries, std::size_t& position,
                    DirectoryEntry& entry) const noexcept override {
        while (position + offset_of_name < entries.size()) {
            std::uint16_t length = 0;
            std::uint8_t type = DT_UNKNOWN;
            std::memcpy(&length, &entries[position + 16], sizeof length);
            std::memcpy(&type, &entries[position + 18], sizeof type);
            const char* name = reinterpret_cast<const char*>(&entries[position + offset_of_name]);
            position += length;
            const bool dots = name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
            if (!dots) {
                entry = {name, get_file_kind_from_dirent_type(type)};
                return true;
            }
        }
        return false;
    }
    int sync_file_system(Directory directory) noexcept override { return to_result(::syncfs(directory)); }

 private:
    // struct linux_dirent64: inode 8 bytes, offset 8, length of the record 2, type 1, then the name.
    static constexpr std::size_t offset_of_name = 19;

    int direct_;  ///< a flag of open(2), or 0
};

}  // namespace

std::unique_ptr<NameOperations> make_posix_name_operations(bool direct) {
    return std::make_unique<PosixNameOperations>(direct);
}

}  // namespace sonde::backends
