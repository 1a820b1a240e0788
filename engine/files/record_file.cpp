// SPDX-License-Identifier: Apache-2.0
#include "files/record_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace sonde::files {
namespace {

constexpr int append_flags = O_WRONLY | O_APPEND | O_CLOEXEC;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
    throw std::runtime_error("cannot write the record " + path + ": " + reason);
}

std::string explain_error(int error) {
    return std::strerror(error) + std::string(error == ENOENT ? "; make its folder first" : "");
}

/// Names that the kernel or root gives: /dev/stdout, /dev/fd/63 of a shell, devices. Not /dev/shm/x.
bool is_system_name(const std::string& path) {
    return path.rfind("/proc/", 0) == 0 || path.rfind("/dev/fd/", 0) == 0 ||
           (path.rfind("/dev/", 0) == 0 && path.find('/', 5) == std::string::npos);
}

bool is_same_file(const struct stat& first, const struct stat& second) {
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/// Why an existing file is not used; empty when it may be.
std::string explain_unsafe_file(const struct stat& info, const ConfinedDirectory& folder) {
    if (S_ISLNK(info.st_mode)) {
        return "it is a symbolic link: name the file itself";
    }
    if (S_ISREG(info.st_mode) && info.st_nlink > 1) {
        return "it has a second name, maybe that of another file: name a new file";
    }
    if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode)) {
        return "it is no regular file";
    }
    // On a server that maps users (root_squash), files of root belong to another user.
    const bool is_own = info.st_uid == geteuid() || info.st_uid == folder.owner_of_new_files();
    return is_own ? std::string() : "it belongs to " + user_text(info.st_uid) + ": name a new file";
}

}  // namespace

int RecordFile::open_existing(int access) {
    const Descriptor path_only = folder_.open_file(name_, O_PATH);
    struct stat info {};
    if (*path_only < 0) {
        return *path_only;
    }
    if (::fstat(*path_only, &info) != 0) {
        return -errno;
    }
    if (const std::string reason = explain_unsafe_file(info, folder_); !reason.empty()) {
        fail(path_, reason);
    }
    // The file that was examined, even if its name now refers to another file.
    const std::string examined = "/proc/self/fd/" + std::to_string(*path_only);
    const int readable = S_ISREG(info.st_mode) ? access : O_WRONLY;
    const int opened = ::open(examined.c_str(), (append_flags & ~O_ACCMODE) | readable);
    return opened >= 0 ? opened : -errno;
}

void RecordFile::open_beneath_folder() {
    const std::size_t slash = path_.rfind('/');
    name_ = slash == std::string::npos ? path_ : path_.substr(slash + 1);
    std::string folder = slash == std::string::npos ? "." : path_.substr(0, std::max<std::size_t>(slash, 1));
    while (folder.size() > 1 && folder.back() == '/') {
        folder.pop_back();  // with a slash at the end, the kernel would follow a symbolic link
    }
    folder_ = ConfinedDirectory::open_made(folder);
    if (!folder_) {
        const bool is_link = folder_.error() == ELOOP || folder_.error() == ENOTDIR;
        fail(path_, is_link ? folder + " is a symbolic link or no folder: name the folder itself"
                            : explain_error(folder_.error()));
    }
    int opened = open_existing(O_WRONLY);
    for (int tries = 0; opened == -ENOENT && tries < 3; ++tries) {
        Descriptor created = folder_.create_file(name_, 0644, O_APPEND);
        is_new_ = *created >= 0;
        if (is_new_) {
            descriptor_ = std::move(created);
            return;
        }
        opened = *created == -EEXIST ? open_existing(O_WRONLY) : *created;
        if (opened < 0 && opened != -ENOENT) {
            break;
        }
    }
    if (opened < 0) {
        fail(path_, explain_error(-opened));
    }
    descriptor_ = Descriptor(opened);
}

RecordFile RecordFile::open(const std::string& path) {
    RecordFile file(path);
    if (path == "-") {
        file.descriptor_ = Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    } else if (is_system_name(path)) {
        file.descriptor_ = Descriptor(::open(path.c_str(), append_flags));
    } else if (!path.empty()) {
        file.open_beneath_folder();
    }
    if (*file.descriptor_ < 0 && !path.empty()) {
        fail(path, explain_error(errno));
    }
    return file;
}

RecordFile RecordFile::reopen() const {
    if (!has_name()) {
        return RecordFile::open(path_);
    }
    RecordFile again(path_);
    again.folder_ = folder_.duplicate();
    again.name_ = name_;
    again.descriptor_ = Descriptor(again.open_existing(O_RDWR));
    struct stat own_status {};
    struct stat other {};
    if (::fstat(*descriptor_, &own_status) != 0 || ::fstat(*again.descriptor_, &other) != 0 ||
        !is_same_file(own_status, other)) {
        fail(path_, "its name stands for another file by now");
    }
    return again;
}

void RecordFile::remove() const {
    struct stat own_status {};
    struct stat other {};
    if (has_name() && ::fstat(*descriptor_, &own_status) == 0 && folder_.status(name_, other) == 0 &&
        is_same_file(own_status, other)) {
        folder_.unlink(name_);
    }
}

}  // namespace sonde::files
