// SPDX-License-Identifier: Apache-2.0
#include "files/confined_directory.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace sonde::files {
namespace {

constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::atomic<bool> stepwise_forced{false};

int get_errno_if_failed(int result) {
    return result == 0 ? 0 : -errno;
}

bool is_component(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
           name.find('\0') == std::string_view::npos;
}

/// Removes the first component from `remainder` and returns it.
std::string take_component(std::string_view& remainder) {
    const std::size_t slash = remainder.find('/');
    const std::string component(remainder.substr(0, slash));
    remainder.remove_prefix(slash == std::string_view::npos ? remainder.size() : slash + 1);
    return component;
}

bool are_components(std::string_view relative) {
    if (relative.empty() || relative.back() == '/') {
        return false;
    }
    while (!relative.empty()) {
        if (!is_component(take_component(relative))) {
            return false;
        }
    }
    return true;
}

std::string last_component(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    return is_component(name) ? name : std::string();
}

/// A descriptor or -errno. A directory that may be entered but not read is opened for its entries only.
int open_directory(int parent, const char* path, int more_flags) {
    int opened = ::openat(parent, path, directory_flags | more_flags);
    if (opened < 0 && errno == EACCES) {
        opened = ::openat(parent, path, O_PATH | O_DIRECTORY | O_CLOEXEC | more_flags);
    }
    return opened < 0 ? -errno : opened;
}

/// A descriptor or -errno. The kernel asks to try again (EAGAIN) when something was renamed while it looked.
int open_beneath(int directory, const std::string& relative) {
    open_how how{};
    how.flags = directory_flags;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    constexpr int tries = 100;
    constexpr auto entries_only = static_cast<std::uint64_t>(O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < tries; ++i) {
        const long opened = ::syscall(SYS_openat2, directory, relative.c_str(), &how, sizeof how);
        if (opened >= 0) {
            return static_cast<int>(opened);
        }
        if (errno == EACCES && how.flags != entries_only) {
            how.flags = entries_only;
        } else if (errno != EAGAIN && errno != EINTR) {
            break;
        }
    }
    return -errno;
}

}  // namespace

Listing::Listing(int descriptor) {
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags < 0 || (flags & O_PATH) != 0) {
        error_ = flags < 0 ? errno : EACCES;  // O_PATH: the caller may enter the directory but not read it
        return;
    }
    // The duplicate shares its position with the descriptor, which may have been listed before.
    const int duplicate = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    entries_.reset(duplicate < 0 ? nullptr : ::fdopendir(duplicate));
    error_ = entries_ != nullptr ? 0 : errno;
    if (entries_ != nullptr) {
        ::rewinddir(entries_.get());
    } else if (duplicate >= 0) {
        ::close(duplicate);
    }
}

const char* Listing::next() {
    while (const dirent* entry = entries_ != nullptr ? ::readdir(entries_.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            may_be_directory_ = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
            return entry->d_name;
        }
    }
    return nullptr;
}

ConfinedDirectory::ConfinedDirectory(int descriptor_or_error, std::string path)
    : descriptor_(descriptor_or_error < 0 ? -1 : descriptor_or_error),
      error_(descriptor_or_error < 0 ? -descriptor_or_error : 0),
      path_(std::move(path)) {
}

ConfinedDirectory ConfinedDirectory::open(const std::string& path) {
    return {open_directory(AT_FDCWD, path.c_str(), 0), path};
}

ConfinedDirectory ConfinedDirectory::open_made(const std::string& path) {
    ConfinedDirectory made(open_directory(AT_FDCWD, path.c_str(), O_NOFOLLOW), path);
    made.name_ = last_component(path);
    return made;
}

ConfinedDirectory ConfinedDirectory::open_entry(const std::string& name) const {
    const int opened = !is_component(name) ? -EINVAL
                       : *this             ? open_directory(*descriptor_, name.c_str(), O_NOFOLLOW)
                                           : -error_;
    ConfinedDirectory inside(opened, path_ + (path_.ends_with('/') ? "" : "/") + name);
    inside.name_ = name;
    return inside;
}

void ConfinedDirectory::force_stepwise_resolution(bool force) {
    stepwise_forced.store(force);
}

ConfinedDirectory ConfinedDirectory::open_subdirectory(const std::string& relative) const {
    const std::string path = path_ + (path_.ends_with('/') ? "" : "/") + relative;
    if (!*this) {
        return {-error_, path};
    }
    if (!are_components(relative)) {
        return {-EINVAL, path};
    }
    int opened = stepwise_forced.load() ? -ENOSYS : open_beneath(*descriptor_, relative);
    if (opened == -ENOSYS || opened == -EPERM) {  // an older kernel, or the filter of a container
        return open_step_by_step(relative, path);
    }
    ConfinedDirectory inside(opened, path);
    inside.name_ = last_component(relative);
    return inside;
}

ConfinedDirectory ConfinedDirectory::open_step_by_step(const std::string& relative, const std::string& path) const {
    struct stat above {};
    struct stat here {};
    if (const int failed = status(above); failed != 0) {
        return {failed, path};
    }
    Descriptor current(-1);
    std::string_view remainder = relative;
    while (!remainder.empty()) {
        const std::string component = take_component(remainder);
        // Directories on the way need not be readable.
        const int parent = *current < 0 ? *descriptor_ : *current;
        Descriptor next(remainder.empty()
                            ? open_directory(parent, component.c_str(), O_NOFOLLOW)
                            : ::openat(parent, component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (*next < 0 || ::fstat(*next, &here) != 0) {
            return {-errno, path};
        }
        if (!S_ISDIR(here.st_mode) || here.st_dev != above.st_dev) {
            return {S_ISDIR(here.st_mode) ? -EXDEV : -ENOTDIR, path};
        }
        current = std::move(next);
    }
    ConfinedDirectory inside(-ENOENT, path);
    inside.descriptor_ = std::move(current);
    inside.error_ = 0;
    inside.name_ = last_component(relative);
    return inside;
}

ConfinedDirectory ConfinedDirectory::duplicate() const {
    const int copy = *this ? ::fcntl(*descriptor_, F_DUPFD_CLOEXEC, 0) : -error_;
    ConfinedDirectory same(*this && copy < 0 ? -errno : copy, path_);
    same.name_ = name_;
    return same;
}

ConfinedDirectory ConfinedDirectory::open_parent() const {
    return {*this ? open_directory(*descriptor_, "..", 0) : -error_, path_ + "/.."};
}

std::string ConfinedDirectory::current_path() const {
    std::array<char, PATH_MAX> text{};
    const std::string link = "/proc/self/fd/" + std::to_string(*descriptor_);
    const ssize_t length = *this ? ::readlink(link.c_str(), text.data(), text.size()) : -1;
    return length <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(length));
}

std::string ConfinedDirectory::name() const {
    return name_.empty() ? last_component(current_path()) : name_;
}

Descriptor ConfinedDirectory::open_file(const std::string& name, int flags, mode_t mode) const {
    if (const int failed = check_name(name); failed != 0) {
        return Descriptor(failed);
    }
    const int opened = ::openat(*descriptor_, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode);
    return Descriptor(opened < 0 ? -errno : opened);
}

Descriptor ConfinedDirectory::create_file(const std::string& name, mode_t mode, int more_flags) const {
    return open_file(name, O_WRONLY | O_CREAT | O_EXCL | more_flags, mode);
}

int ConfinedDirectory::check_name(const std::string& name) const {
    return !*this ? -error_ : is_component(name) ? 0 : -EINVAL;
}

int ConfinedDirectory::make_directory(const std::string& name, mode_t mode) const {
    const int failed = check_name(name);
    return failed != 0 ? failed : get_errno_if_failed(::mkdirat(*descriptor_, name.c_str(), mode));
}

int ConfinedDirectory::unlink(const std::string& name) const {
    const int failed = check_name(name);
    return failed != 0 ? failed : get_errno_if_failed(::unlinkat(*descriptor_, name.c_str(), 0));
}

int ConfinedDirectory::rename(const std::string& from, const std::string& to) const {
    const int failed = check_name(from) != 0 ? check_name(from) : check_name(to);
    return failed != 0 ? failed : get_errno_if_failed(::renameat(*descriptor_, from.c_str(), *descriptor_, to.c_str()));
}

int ConfinedDirectory::remove_directory(const std::string& name) const {
    const int failed = check_name(name);
    return failed != 0 ? failed : get_errno_if_failed(::unlinkat(*descriptor_, name.c_str(), AT_REMOVEDIR));
}

int ConfinedDirectory::remove_directory(const ConfinedDirectory& child) const {
    struct stat named_status {};
    struct stat held {};
    const std::string name = child.name();
    if (const int failed = child.status(held); failed != 0) {
        return failed;
    }
    if (const int failed = status(name, named_status); failed != 0) {
        return failed;
    }
    if (named_status.st_dev != held.st_dev || named_status.st_ino != held.st_ino) {
        return replaced;
    }
    // If another process exchanges the name at this moment, no data is lost: the call removes empty directories only.
    return remove_directory(name);
}

int ConfinedDirectory::status(const std::string& name, struct stat& into) const {
    const int failed = check_name(name);
    return failed != 0 ? failed
                       : get_errno_if_failed(::fstatat(*descriptor_, name.c_str(), &into, AT_SYMLINK_NOFOLLOW));
}

int ConfinedDirectory::status(struct stat& into) const {
    return *this ? get_errno_if_failed(::fstat(*descriptor_, &into)) : -error_;
}

void ConfinedDirectory::synchronize() const {
    ::fsync(*descriptor_);
}

bool ConfinedDirectory::is_removed() const {
    struct stat info {};
    // Some file systems (Btrfs) count no links of directories.
    return status(info) == 0 && (info.st_nlink == 0 || current_path().ends_with(" (deleted)"));
}

bool ConfinedDirectory::is_owned_by_caller() const {
    struct stat info {};
    return status(info) == 0 && info.st_uid == ::geteuid();
}

bool ConfinedDirectory::is_made_by_caller() const {
    struct stat info {};
    return is_owned_by_caller() || (status(info) == 0 && info.st_uid == owner_of_new_files());
}

uid_t ConfinedDirectory::owner_of_new_files() const {
    struct stat info {};
    const Descriptor nameless(::openat(*descriptor_, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (*nameless >= 0) {
        return ::fstat(*nameless, &info) == 0 ? info.st_uid : ::geteuid();
    }
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) {
        return ::geteuid();
    }
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), ".sonde-owner-%016llx", static_cast<unsigned long long>(number));
    const Descriptor file = create_file(name.data(), 0600);
    const bool is_known = *file >= 0 && ::fstat(*file, &info) == 0;
    if (*file >= 0) {
        unlink(name.data());
    }
    return is_known ? info.st_uid : ::geteuid();
}

std::string ConfinedDirectory::explain_unsafe_directory() const {
    struct stat info {};
    if (status(info) != 0) {
        return "cannot be examined";
    }
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
        return "belongs to " + user_text(info.st_uid);
    }
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0) {
        std::array<char, 8> mode{};
        std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(info.st_mode & 07777U));
        return std::string("can be written by other users (mode ") + mode.data() + ", owner " + user_text(info.st_uid) +
               ")";
    }
    return {};
}

std::string user_text(uid_t user) {
    passwd entry{};
    passwd* result = nullptr;
    std::array<char, 4096> text{};
    const bool is_known = ::getpwuid_r(user, &entry, text.data(), text.size(), &result) == 0 && result != nullptr;
    return "user " + std::to_string(user) + (is_known ? " (" + std::string(result->pw_name) + ")" : std::string());
}

}  // namespace sonde::files
