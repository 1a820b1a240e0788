// SPDX-License-Identifier: Apache-2.0
#include "mounted/service.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace sonde::simulate {
namespace {

constexpr std::string_view lov_name = "lustre.lov", text_name = "sonde.layout";

/// The kernel asks for these on its own, before writes and when it checks rights; what they rule is not supported.
bool of_the_kernel(std::string_view name) {
    return name.starts_with("security.") || name.starts_with("system.");
}

void answer_value(fuse_req_t request, std::string_view value, std::size_t size) {
    if (size == 0) {
        fuse_reply_xattr(request, value.size());
    } else if (size < value.size()) {
        fuse_reply_err(request, ERANGE);
    } else {
        fuse_reply_buf(request, value.data(), value.size());
    }
}

int change_times(const Inode& inode, const struct stat& wanted, int which) {
    struct timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
    if ((which & FUSE_SET_ATTR_ATIME_NOW) != 0) {
        times[0].tv_nsec = UTIME_NOW;
    } else if ((which & FUSE_SET_ATTR_ATIME) != 0) {
        times[0] = wanted.st_atim;
    }
    if ((which & FUSE_SET_ATTR_MTIME_NOW) != 0) {
        times[1].tv_nsec = UTIME_NOW;
    } else if ((which & FUSE_SET_ATTR_MTIME) != 0) {
        times[1] = wanted.st_mtim;
    }
    if (S_ISLNK(inode.mode)) {
        return ::utimensat(inode.fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
    }
    return ::utimensat(AT_FDCWD, DescriptorPath(inode.fd).c_str(), times, 0);
}

/// 0 or an errno.
int change(const Inode& inode, const struct stat& wanted, int which) {
    const DescriptorPath path(inode.fd);
    if ((which & FUSE_SET_ATTR_MODE) != 0 && ::chmod(path.c_str(), wanted.st_mode) != 0) {
        return errno;
    }
    if ((which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
        const uid_t owner = (which & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1);
        const gid_t group = (which & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1);
        if (::fchownat(inode.fd, "", owner, group, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
            return errno;
        }
    }
    if ((which & FUSE_SET_ATTR_SIZE) != 0 && ::truncate(path.c_str(), wanted.st_size) != 0) {
        return errno;
    }
    constexpr int times = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
    return (which & times) != 0 && change_times(inode, wanted, which) != 0 ? errno : 0;
}

}  // namespace

/// Who asks with an open file is the kernel itself, in the course of another call.
void Service::getattr(fuse_req_t request, fuse_ino_t node, Info* info) {
    Inode& of = inode(node);
    if (of.control != nullptr) {
        const struct stat attributes = ControlFiles::attributes_of(*of.control);
        fuse_reply_attr(request, &attributes, 0);
        return;
    }
    struct stat attributes {};
    int error = 0;
    const auto look = [&] {
        error = ::fstatat(of.fd, "", &attributes, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    };
    if (info != nullptr) {
        look();
    } else {
        const Pace::Call call(pace_, on_names(request, Call::stat, store_.file(of)), caller(request));
        look();
    }
    if (error != 0) {
        fuse_reply_err(request, error);
        return;
    }
    fuse_reply_attr(request, &attributes, entry_of(of, attributes).attr_timeout);
}

void Service::setattr(fuse_req_t request, fuse_ino_t node, struct stat* wanted, int which, Info* /*info*/) {
    Inode& of = inode(node);
    if (of.control != nullptr) {  // `>` truncates before it writes
        const struct stat attributes = ControlFiles::attributes_of(*of.control);
        fuse_reply_attr(request, &attributes, 0);
        return;
    }
    struct stat attributes {};
    int error = 0;
    {
        const FileId file = store_.file(of);
        const Pace::Call call(pace_, on_names(request, Call::stat, file), caller(request));
        error = change(of, *wanted, which);
        if (error == 0 && (which & FUSE_SET_ATTR_SIZE) != 0) {
            pace_.with([&](Machine& machine) { machine.resize(file, static_cast<std::uint64_t>(wanted->st_size)); });
        }
        if (::fstatat(of.fd, "", &attributes, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0 && error == 0) {
            error = errno;
        }
    }
    if (error != 0) {
        fuse_reply_err(request, error);
        return;
    }
    fuse_reply_attr(request, &attributes, entry_of(of, attributes).attr_timeout);
}

void Service::statfs(fuse_req_t request, fuse_ino_t /*node*/) {
    struct statvfs facts {};
    if (::fstatvfs(store_.root().fd, &facts) != 0) {
        fuse_reply_err(request, errno);
        return;
    }
    fuse_reply_statfs(request, &facts);
}

void Service::getxattr(fuse_req_t request, fuse_ino_t node, const char* name, std::size_t size) {
    Inode& of = inode(node);
    const std::string_view what = name;
    if (of.control != nullptr || of_the_kernel(what)) {
        fuse_reply_err(request, what.starts_with("system.") ? EOPNOTSUPP : ENODATA);
        return;
    }
    Pace::Call(pace_, on_names(request, Call::stat, store_.file(of)), caller(request)).wait();
    if (what == lov_name || what == text_name) {
        if (!S_ISREG(of.mode) && !of.directory()) {
            fuse_reply_err(request, ENODATA);
            return;
        }
        Layout layout;
        if (of.directory()) {
            const std::optional<WantedLayout> wanted = store_.inherited(of);
            if (!wanted) {
                fuse_reply_err(request, ENODATA);
                return;
            }
            layout = wanted->over(layout, pace_.site());
        } else {
            layout = store_.layout(of);
        }
        answer_value(request,
                     what == lov_name ? lov_of(layout, pace_.site(), of.number) : text_of(layout, pace_.site()), size);
        return;
    }
    if (what == kept_layout) {
        fuse_reply_err(request, ENODATA);
        return;
    }
    std::string value(size, '\0');
    const ssize_t length = ::getxattr(DescriptorPath(of.fd).c_str(), name, value.data(), size);
    if (length < 0) {
        fuse_reply_err(request, errno);
    } else if (size == 0) {
        fuse_reply_xattr(request, static_cast<std::size_t>(length));
    } else {
        fuse_reply_buf(request, value.data(), static_cast<std::size_t>(length));
    }
}

void Service::setxattr(fuse_req_t request, fuse_ino_t node, const char* name, const char* value, std::size_t size,
                       int flags) {
    Inode& of = inode(node);
    const std::string_view what = name;
    if (of.control != nullptr || of_the_kernel(what) || what == kept_layout) {
        fuse_reply_err(request, EOPNOTSUPP);
        return;
    }
    Pace::Call(pace_, on_names(request, Call::stat, store_.file(of)), caller(request)).wait();
    if (what == lov_name || what == text_name) {
        const std::string_view given(value, size);
        const std::optional<WantedLayout> wanted = what == lov_name ? from_lov(given) : from_text(given);
        int error = EINVAL;
        if (wanted && (S_ISREG(of.mode) || of.directory())) {
            error = of.directory() ? store_.set_inherited(of, *wanted) : store_.set_layout(of, *wanted);
        }
        fuse_reply_err(request, error);
        return;
    }
    fuse_reply_err(request, ::setxattr(DescriptorPath(of.fd).c_str(), name, value, size, flags) == 0 ? 0 : errno);
}

/// The layout is not listed, as programs that copy attributes would take it for one that they can set anywhere.
void Service::listxattr(fuse_req_t request, fuse_ino_t node, std::size_t size) {
    Inode& of = inode(node);
    if (of.control != nullptr) {
        answer_value(request, {}, size);
        return;
    }
    std::string all(XATTR_LIST_MAX, '\0');
    const ssize_t length = ::listxattr(DescriptorPath(of.fd).c_str(), all.data(), all.size());
    if (length < 0) {
        fuse_reply_err(request, errno);
        return;
    }
    std::string seen;
    for (std::size_t at = 0; at < static_cast<std::size_t>(length);) {
        const std::string name = all.c_str() + at;
        at += name.size() + 1;
        if (name != kept_layout && !of_the_kernel(name)) {
            seen.append(name).push_back('\0');
        }
    }
    answer_value(request, seen, size);
}

void Service::removexattr(fuse_req_t request, fuse_ino_t node, const char* name) {
    Inode& of = inode(node);
    if (of.control != nullptr || of_the_kernel(name) || std::string_view(name) == kept_layout) {
        fuse_reply_err(request, ENODATA);
        return;
    }
    Pace::Call(pace_, on_names(request, Call::stat, store_.file(of)), caller(request)).wait();
    fuse_reply_err(request, ::removexattr(DescriptorPath(of.fd).c_str(), name) == 0 ? 0 : errno);
}

}  // namespace sonde::simulate
