// SPDX-License-Identifier: Apache-2.0
#include "mounted/store.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace sonde::simulate {
namespace {

/// The machine's name of a file: its inode number, since a file may have several names.
std::string model_file_name(const Inode& inode) {
    return std::to_string(inode.device) + ":" + std::to_string(inode.number);
}

std::string format_requested_layout(const RequestedLayout& requested) {
    return "stripe_count: " +
           std::to_string(requested.count ? static_cast<std::int64_t>(std::int32_t(*requested.count)) : 0) +
           " stripe_size: " + std::to_string(requested.size.value_or(0)) +
           " stripe_offset: " + std::to_string(requested.start ? std::int64_t{*requested.start} : -1);
}

}  // namespace

DescriptorPath::DescriptorPath(int fd) {
    std::snprintf(text_, sizeof text_, "/proc/self/fd/%d", fd);
}

Store::Store(int root, RealTimeMachine& pace) : machine_(pace) {
    struct stat attributes {};
    ::fstat(root, &attributes);
    root_.fd = root;
    root_.device = attributes.st_dev;
    root_.number = attributes.st_ino;
    root_.mode = attributes.st_mode;
}

Store::~Store() {
    for (const auto& [key, inode] : inodes_) {
        ::close(inode->fd);
    }
    ::close(root_.fd);
}

Inode* Store::look_up_inode(const Inode& parent, const char* name, struct stat& attributes) {
    const int fd = ::openat(parent.fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return nullptr;
    }
    if (::fstatat(fd, "", &attributes, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
        const int error = errno;
        ::close(fd);
        errno = error;
        return nullptr;
    }
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Inode>& inode = inodes_[{attributes.st_dev, attributes.st_ino}];
    if (inode) {
        ::close(fd);
    } else {
        inode = std::make_unique<Inode>();
        inode->fd = fd;
        inode->device = attributes.st_dev;
        inode->number = attributes.st_ino;
        inode->mode = attributes.st_mode;
    }
    ++inode->lookup_count;
    return inode.get();
}

void Store::release_lookups(Inode& inode, std::uint64_t lookups) {
    if (&inode == &root_ || inode.control != nullptr) {
        return;
    }
    const std::lock_guard lock(mutex_);
    inode.lookup_count -= std::min(inode.lookup_count, lookups);
    if (inode.lookup_count > 0) {
        return;
    }
    struct stat attributes {};
    const bool is_removed = ::fstatat(inode.fd, "", &attributes, AT_EMPTY_PATH) == 0 && attributes.st_nlink == 0;
    if (is_removed && inode.has_file) {
        machine_.call_machine([&](Machine& machine) { machine.remove_file(model_file_name(inode)); });
    }
    ::close(inode.fd);
    inodes_.erase({inode.device, inode.number});
}

void Store::store_layout(const Inode& inode, const std::string& text) {
    ::setxattr(DescriptorPath(inode.fd).c_str(), layout_attribute, text.data(), text.size(), 0);
}

std::optional<RequestedLayout> Store::load_layout(const Inode& inode) {
    char text[256];
    const ssize_t length = ::getxattr(DescriptorPath(inode.fd).c_str(), layout_attribute, text, sizeof text);
    return length > 0 ? parse_layout({text, static_cast<std::size_t>(length)}) : std::nullopt;
}

std::optional<RequestedLayout> Store::load_inherited_layout(Inode& directory) {
    if (!directory.is_inherited_layout_loaded) {
        directory.is_inherited_layout_loaded = true;
        directory.inherited_layout = load_layout(directory);
    }
    return directory.inherited_layout;
}

std::optional<RequestedLayout> Store::get_inherited_layout(Inode& directory) {
    const std::lock_guard lock(mutex_);
    return load_inherited_layout(directory);
}

FileId Store::get_file(Inode& inode, const Inode* parent) {
    const std::lock_guard lock(mutex_);
    if (inode.has_file) {
        return inode.file;
    }
    const bool is_regular = S_ISREG(inode.mode);
    std::optional<RequestedLayout> requested;
    std::uint64_t size = 0;
    if (is_regular) {
        struct stat attributes {};
        if (::fstatat(inode.fd, "", &attributes, AT_EMPTY_PATH) == 0) {
            size = static_cast<std::uint64_t>(attributes.st_size);
        }
        requested = parent != nullptr ? load_inherited_layout(const_cast<Inode&>(*parent)) : load_layout(inode);
    }
    ModelLayout layout;
    inode.file = machine_.call_machine([&](Machine& machine) {
        const std::string name = model_file_name(inode);
        const bool is_new = !machine.exists(name);
        const FileId file = machine.get_file(name);
        if (is_new && requested) {
            try {
                machine.set_layout(file, requested->apply_to(machine.get_layout(file), machine.system()));
            } catch (const SystemModelError&) {
                layout = {};  // the stored layout is of another machine
            }
        }
        if (is_new && size > 0) {
            machine.resize_file(file, size);
        }
        layout = machine.get_layout(file);
        return file;
    });
    inode.has_file = true;
    if (is_regular && (parent != nullptr || !requested)) {
        store_layout(inode, format_layout(layout, machine_.system()));
    }
    return inode.file;
}

ModelLayout Store::get_layout(Inode& inode) {
    const FileId id = get_file(inode);
    return machine_.call_machine([id](Machine& machine) { return machine.get_layout(id); });
}

int Store::set_layout(Inode& inode, const RequestedLayout& requested) {
    const FileId id = get_file(inode);
    struct stat attributes {};
    if (::fstatat(inode.fd, "", &attributes, AT_EMPTY_PATH) != 0) {
        return errno;
    }
    if (attributes.st_size > 0) {
        return EEXIST;  // as Lustre returns for a file that has objects
    }
    try {
        const ModelLayout layout = machine_.call_machine([&](Machine& machine) {
            machine.set_layout(id, requested.apply_to(machine.get_layout(id), machine.system()));
            return machine.get_layout(id);
        });
        store_layout(inode, format_layout(layout, machine_.system()));
    } catch (const SystemModelError&) {
        return EINVAL;
    }
    return 0;
}

int Store::set_inherited_layout(Inode& directory, const RequestedLayout& requested) {
    const SystemModel& site = machine_.system();
    const ModelLayout layout = requested.apply_to({}, site);
    if (layout.size < 4096 || layout.size % 4096 != 0 || layout.count == 0 || layout.start >= site.targets.size()) {
        return EINVAL;
    }
    const std::lock_guard lock(mutex_);
    directory.is_inherited_layout_loaded = true;
    directory.inherited_layout = requested;
    store_layout(directory, format_requested_layout(requested));
    return 0;
}

}  // namespace sonde::simulate
