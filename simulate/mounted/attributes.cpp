// SPDX-License-Identifier: Apache-2.0
#include "mounted/service.hpp"

#include <algorithm>
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

/// Attributes that the kernel reads before writes and when it checks permissions. They are not supported.
bool is_kernel_attribute(std::string_view name) {
    return name.starts_with("security.") || name.starts_with("system.");
}

void reply_value(fuse_req_t request, std::string_view value, std::size_t size) {
    if (size == 0) {
        fuse_reply_xattr(request, value.size());
    } else if (size < value.size()) {
        fuse_reply_err(request, ERANGE);
    } else {
        fuse_reply_buf(request, value.data(), value.size());
    }
}

int set_times(const Inode& inode, const struct stat& requested, int mask) {
    struct timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
    if ((mask & FUSE_SET_ATTR_ATIME_NOW) != 0) {
        times[0].tv_nsec = UTIME_NOW;
    } else if ((mask & FUSE_SET_ATTR_ATIME) != 0) {
        times[0] = requested.st_atim;
    }
    if ((mask & FUSE_SET_ATTR_MTIME_NOW) != 0) {
        times[1].tv_nsec = UTIME_NOW;
    } else if ((mask & FUSE_SET_ATTR_MTIME) != 0) {
        times[1] = requested.st_mtim;
    }
    if (S_ISLNK(inode.mode)) {
        return ::utimensat(inode.fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
    }
    return ::utimensat(AT_FDCWD, DescriptorPath(inode.fd).c_str(), times, 0);
}

/// Sets the attributes in `mask`. Returns 0 or an errno.
int set_attributes(const Inode& inode, const struct stat& requested, int mask) {
    const DescriptorPath path(inode.fd);
    if ((mask & FUSE_SET_ATTR_MODE) != 0 && ::chmod(path.c_str(), requested.st_mode) != 0) {
        return errno;
    }
    if ((mask & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
        const uid_t owner = (mask & FUSE_SET_ATTR_UID) != 0 ? requested.st_uid : static_cast<uid_t>(-1);
        const gid_t group = (mask & FUSE_SET_ATTR_GID) != 0 ? requested.st_gid : static_cast<gid_t>(-1);
        if (::fchownat(inode.fd, "", owner, group, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
            return errno;
        }
    }
    if ((mask & FUSE_SET_ATTR_SIZE) != 0 && ::truncate(path.c_str(), requested.st_size) != 0) {
        return errno;
    }
    constexpr int times = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
    return (mask & times) != 0 && set_times(inode, requested, mask) != 0 ? errno : 0;
}

}  // namespace

/// The kernel passes an open file (`info`) in the course of another call, which has its own cost.
void FuseService::getattr(fuse_req_t request, fuse_ino_t node, Info* info) {
    Inode& file = inode(node);
    if (file.control != nullptr) {
        const struct stat attributes = ControlFiles::get_attributes(*file.control);
        fuse_reply_attr(request, &attributes, 0);
        return;
    }
    struct stat attributes {};
    int error = 0;
    const auto read_attributes = [&] {
        error = ::fstatat(file.fd, "", &attributes, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    };
    if (info != nullptr) {
        read_attributes();
    } else {
        const RealTimeMachine::TimedCall call(
            machine_, make_metadata_operation(request, ModelCallKind::stat, store_.get_file(file)),
            calling_thread(request));
        read_attributes();
    }
    if (error != 0) {
        fuse_reply_err(request, error);
        return;
    }
    fuse_reply_attr(request, &attributes, make_entry_reply(file, attributes).attr_timeout);
}

void FuseService::setattr(fuse_req_t request, fuse_ino_t node, struct stat* requested, int mask, Info* /*info*/) {
    Inode& file = inode(node);
    if (file.control != nullptr) {  // `>` truncates before it writes
        const struct stat attributes = ControlFiles::get_attributes(*file.control);
        fuse_reply_attr(request, &attributes, 0);
        return;
    }
    struct stat attributes {};
    int error = 0;
    {
        const FileId model_file = store_.get_file(file);
        const RealTimeMachine::TimedCall call(
            machine_, make_metadata_operation(request, ModelCallKind::stat, model_file), calling_thread(request));
        error = set_attributes(file, *requested, mask);
        if (error == 0 && (mask & FUSE_SET_ATTR_SIZE) != 0) {
            machine_.call_machine([&](Machine& machine) {
                machine.resize_file(model_file, static_cast<std::uint64_t>(requested->st_size));
            });
        }
        if (::fstatat(file.fd, "", &attributes, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0 && error == 0) {
            error = errno;
        }
    }
    if (error != 0) {
        fuse_reply_err(request, error);
        return;
    }
    fuse_reply_attr(request, &attributes, make_entry_reply(file, attributes).attr_timeout);
}

/// Size and free space are those of the machine where its targets have a capacity. What is available is also limited
/// by the disk that stores the bytes.
void FuseService::statfs(fuse_req_t request, fuse_ino_t /*node*/) {
    struct statvfs attributes {};
    if (::fstatvfs(store_.root().fd, &attributes) != 0) {
        fuse_reply_err(request, errno);
        return;
    }
    std::uint64_t capacity = 0, free_bytes = 0;
    bool has_capacity = true;
    machine_.call_machine([&](Machine& machine) {
        for (const TargetCounters& target : machine.get_monitoring_data().targets) {
            has_capacity = has_capacity && target.capacity_bytes > 0;
            capacity += target.capacity_bytes;
            free_bytes += target.free_bytes;
        }
    });
    if (has_capacity && attributes.f_frsize > 0) {
        attributes.f_blocks = capacity / attributes.f_frsize;
        attributes.f_bfree = free_bytes / attributes.f_frsize;
        attributes.f_bavail = std::min(attributes.f_bavail, attributes.f_bfree);
    }
    fuse_reply_statfs(request, &attributes);
}

void FuseService::getxattr(fuse_req_t request, fuse_ino_t node, const char* name, std::size_t size) {
    Inode& file = inode(node);
    const std::string_view attribute = name;
    if (file.control != nullptr || is_kernel_attribute(attribute)) {
        fuse_reply_err(request, attribute.starts_with("system.") ? EOPNOTSUPP : ENODATA);
        return;
    }
    RealTimeMachine::TimedCall(machine_, make_metadata_operation(request, ModelCallKind::stat, store_.get_file(file)),
                               calling_thread(request))
        .wait();
    if (attribute == lov_name || attribute == text_name) {
        if (!S_ISREG(file.mode) && !file.is_directory()) {
            fuse_reply_err(request, ENODATA);
            return;
        }
        ModelLayout layout;
        if (file.is_directory()) {
            const std::optional<RequestedLayout> requested = store_.get_inherited_layout(file);
            if (!requested) {
                fuse_reply_err(request, ENODATA);
                return;
            }
            layout = requested->apply_to(layout, machine_.system());
        } else {
            layout = store_.get_layout(file);
        }
        reply_value(request,
                    attribute == lov_name ? format_lov(layout, machine_.system(), file.number)
                                          : format_layout(layout, machine_.system()),
                    size);
        return;
    }
    if (attribute == layout_attribute) {
        fuse_reply_err(request, ENODATA);
        return;
    }
    std::string value(size, '\0');
    const ssize_t length = ::getxattr(DescriptorPath(file.fd).c_str(), name, value.data(), size);
    if (length < 0) {
        fuse_reply_err(request, errno);
    } else if (size == 0) {
        fuse_reply_xattr(request, static_cast<std::size_t>(length));
    } else {
        fuse_reply_buf(request, value.data(), static_cast<std::size_t>(length));
    }
}

void FuseService::setxattr(fuse_req_t request, fuse_ino_t node, const char* name, const char* value, std::size_t size,
                           int flags) {
    Inode& file = inode(node);
    const std::string_view attribute = name;
    if (file.control != nullptr || is_kernel_attribute(attribute) || attribute == layout_attribute) {
        fuse_reply_err(request, EOPNOTSUPP);
        return;
    }
    RealTimeMachine::TimedCall(machine_, make_metadata_operation(request, ModelCallKind::stat, store_.get_file(file)),
                               calling_thread(request))
        .wait();
    if (attribute == lov_name || attribute == text_name) {
        const std::string_view text(value, size);
        const std::optional<RequestedLayout> requested = attribute == lov_name ? parse_lov(text) : parse_layout(text);
        int error = EINVAL;
        if (requested && (S_ISREG(file.mode) || file.is_directory())) {
            error = file.is_directory() ? store_.set_inherited_layout(file, *requested)
                                        : store_.set_layout(file, *requested);
        }
        fuse_reply_err(request, error);
        return;
    }
    fuse_reply_err(request, ::setxattr(DescriptorPath(file.fd).c_str(), name, value, size, flags) == 0 ? 0 : errno);
}

/// The layout is not listed, since programs that copy attributes could not set it on other file systems.
void FuseService::listxattr(fuse_req_t request, fuse_ino_t node, std::size_t size) {
    Inode& file = inode(node);
    if (file.control != nullptr) {
        reply_value(request, {}, size);
        return;
    }
    std::string names(XATTR_LIST_MAX, '\0');
    const ssize_t length = ::listxattr(DescriptorPath(file.fd).c_str(), names.data(), names.size());
    if (length < 0) {
        fuse_reply_err(request, errno);
        return;
    }
    std::string visible;
    for (std::size_t offset = 0; offset < static_cast<std::size_t>(length);) {
        const std::string name = names.c_str() + offset;
        offset += name.size() + 1;
        if (name != layout_attribute && !is_kernel_attribute(name)) {
            visible.append(name).push_back('\0');
        }
    }
    reply_value(request, visible, size);
}

void FuseService::removexattr(fuse_req_t request, fuse_ino_t node, const char* name) {
    Inode& file = inode(node);
    if (file.control != nullptr || is_kernel_attribute(name) || std::string_view(name) == layout_attribute) {
        fuse_reply_err(request, ENODATA);
        return;
    }
    RealTimeMachine::TimedCall(machine_, make_metadata_operation(request, ModelCallKind::stat, store_.get_file(file)),
                               calling_thread(request))
        .wait();
    fuse_reply_err(request, ::removexattr(DescriptorPath(file.fd).c_str(), name) == 0 ? 0 : errno);
}

}  // namespace sonde::simulate
