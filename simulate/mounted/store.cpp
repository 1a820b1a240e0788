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

/// What the machine calls a file. The number of an inode, as names may change and there may be several.
std::string name_of(const Inode& inode) {
    return std::to_string(inode.device) + ":" + std::to_string(inode.number);
}

std::string text_of_wanted(const WantedLayout& wanted) {
    return "stripe_count: " +
           std::to_string(wanted.count ? static_cast<std::int64_t>(std::int32_t(*wanted.count)) : 0) +
           " stripe_size: " + std::to_string(wanted.size.value_or(0)) +
           " stripe_offset: " + std::to_string(wanted.start ? std::int64_t{*wanted.start} : -1);
}

}  // namespace

DescriptorPath::DescriptorPath(int fd) {
    std::snprintf(text_, sizeof text_, "/proc/self/fd/%d", fd);
}

Store::Store(int root, Pace& pace) : pace_(pace) {
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

Inode* Store::look_up(const Inode& parent, const char* name, struct stat& attributes) {
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
    std::unique_ptr<Inode>& found = inodes_[{attributes.st_dev, attributes.st_ino}];
    if (found) {
        ::close(fd);
    } else {
        found = std::make_unique<Inode>();
        found->fd = fd;
        found->device = attributes.st_dev;
        found->number = attributes.st_ino;
        found->mode = attributes.st_mode;
    }
    ++found->lookups;
    return found.get();
}

void Store::forget(Inode& inode, std::uint64_t lookups) {
    if (&inode == &root_ || inode.control != nullptr) {
        return;
    }
    const std::lock_guard lock(mutex_);
    inode.lookups -= std::min(inode.lookups, lookups);
    if (inode.lookups > 0) {
        return;
    }
    struct stat attributes {};
    const bool gone = ::fstatat(inode.fd, "", &attributes, AT_EMPTY_PATH) == 0 && attributes.st_nlink == 0;
    if (gone && inode.known) {
        pace_.with([&](Machine& machine) { machine.forget(name_of(inode)); });
    }
    ::close(inode.fd);
    inodes_.erase({inode.device, inode.number});
}

void Store::keep(const Inode& inode, const std::string& text) {
    ::setxattr(DescriptorPath(inode.fd).c_str(), kept_layout, text.data(), text.size(), 0);
}

std::optional<WantedLayout> Store::kept(const Inode& inode) {
    char text[256];
    const ssize_t length = ::getxattr(DescriptorPath(inode.fd).c_str(), kept_layout, text, sizeof text);
    return length > 0 ? from_text({text, static_cast<std::size_t>(length)}) : std::nullopt;
}

std::optional<WantedLayout> Store::passed_on(Inode& directory) {
    if (!directory.asked) {
        directory.asked = true;
        directory.inherited = kept(directory);
    }
    return directory.inherited;
}

std::optional<WantedLayout> Store::inherited(Inode& directory) {
    const std::lock_guard lock(mutex_);
    return passed_on(directory);
}

FileId Store::file(Inode& inode, const Inode* parent) {
    const std::lock_guard lock(mutex_);
    if (inode.known) {
        return inode.file;
    }
    const bool regular = S_ISREG(inode.mode);
    std::optional<WantedLayout> wanted;
    std::uint64_t size = 0;
    if (regular) {
        struct stat attributes {};
        if (::fstatat(inode.fd, "", &attributes, AT_EMPTY_PATH) == 0) {
            size = static_cast<std::uint64_t>(attributes.st_size);
        }
        wanted = parent != nullptr ? passed_on(const_cast<Inode&>(*parent)) : kept(inode);
    }
    Layout layout;
    inode.file = pace_.with([&](Machine& machine) {
        const std::string name = name_of(inode);
        const bool fresh = !machine.exists(name);
        const FileId file = machine.file(name);
        if (fresh && wanted) {
            try {
                machine.set_layout(file, wanted->over(machine.layout(file), machine.site()));
            } catch (const SiteError&) {
                layout = {};  // of another machine: the file lies as this one has dealt it
            }
        }
        if (fresh && size > 0) {
            machine.resize(file, size);
        }
        layout = machine.layout(file);
        return file;
    });
    inode.known = true;
    if (regular && (parent != nullptr || !wanted)) {
        keep(inode, text_of(layout, pace_.site()));
    }
    return inode.file;
}

Layout Store::layout(Inode& inode) {
    const FileId id = file(inode);
    return pace_.with([id](Machine& machine) { return machine.layout(id); });
}

int Store::set_layout(Inode& inode, const WantedLayout& wanted) {
    const FileId id = file(inode);
    struct stat attributes {};
    if (::fstatat(inode.fd, "", &attributes, AT_EMPTY_PATH) != 0) {
        return errno;
    }
    if (attributes.st_size > 0) {
        return EEXIST;  // as Lustre says of a file that has its objects
    }
    try {
        const Layout layout = pace_.with([&](Machine& machine) {
            machine.set_layout(id, wanted.over(machine.layout(id), machine.site()));
            return machine.layout(id);
        });
        keep(inode, text_of(layout, pace_.site()));
    } catch (const SiteError&) {
        return EINVAL;
    }
    return 0;
}

int Store::set_inherited(Inode& directory, const WantedLayout& wanted) {
    const SiteModel& site = pace_.site();
    const Layout layout = wanted.over({}, site);
    if (layout.size < 4096 || layout.size % 4096 != 0 || layout.count == 0 || layout.start >= site.targets.size()) {
        return EINVAL;
    }
    const std::lock_guard lock(mutex_);
    directory.asked = true;
    directory.inherited = wanted;
    keep(directory, text_of_wanted(wanted));
    return 0;
}

}  // namespace sonde::simulate
