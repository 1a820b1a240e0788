// SPDX-License-Identifier: Apache-2.0
#include "mounted/service.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace sonde::simulate {
namespace {

/// The kernel may keep what it knows of names, as nobody else changes them; but it asks for attributes each time, so
/// that the machine sees each stat.
constexpr double keep_names_s = 86400;

}  // namespace

struct Service::Listing {
    struct Entry {
        std::string name;
        ino_t number;
        mode_t type;
    };
    std::vector<Entry> entries;
    bool read = false;
};

bool Service::ours(const Inode& parent, const char* name) const {
    return parent.control != nullptr || (&parent == &store_.root() && std::strcmp(name, own_name) == 0);
}

Operation Service::on_names(fuse_req_t request, Call call, FileId file) {
    Operation operation;
    operation.call = call;
    operation.file = file;
    operation.stream = callers_.names_of(fuse_req_ctx(request)->pid);
    return operation;
}

struct fuse_entry_param Service::entry_of(Inode& inode, const struct stat& attributes) const {
    struct fuse_entry_param entry {};
    entry.ino = reinterpret_cast<fuse_ino_t>(&inode);
    entry.attr = attributes;
    entry.entry_timeout = keep_names_s;
    // Who checks permissions for other users asks for those of each directory on the way.
    entry.attr_timeout = options_.allow_other && inode.directory() ? keep_names_s : 0;
    return entry;
}

/// Free: a call on a path is one message to a metadata server, which is charged when the call itself comes.
void Service::lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
    Inode& at = inode(parent);
    if (ours(at, name)) {
        ControlFile* file =
            at.control == nullptr ? &controls_.root() : ControlFiles::find(const_cast<ControlFile&>(*at.control), name);
        if (file == nullptr) {
            fuse_reply_err(request, ENOENT);
            return;
        }
        const struct fuse_entry_param entry = entry_of(file->inode, ControlFiles::attributes_of(*file));
        fuse_reply_entry(request, &entry);
        return;
    }
    struct stat attributes {};
    Inode* found = store_.look_up(at, name, attributes);
    if (found == nullptr) {
        fuse_reply_err(request, errno);
        return;
    }
    const struct fuse_entry_param entry = entry_of(*found, attributes);
    fuse_reply_entry(request, &entry);
}

void Service::forget(fuse_req_t request, fuse_ino_t node, std::uint64_t lookups) {
    store_.forget(inode(node), lookups);
    fuse_reply_none(request);
}

void Service::forget_multi(fuse_req_t request, std::size_t count, struct fuse_forget_data* all) {
    for (std::size_t i = 0; i < count; ++i) {
        store_.forget(inode(all[i].ino), all[i].nlookup);
    }
    fuse_reply_none(request);
}

/// What root makes for others belongs to them; a directory passes its layout on.
Inode* Service::made(fuse_req_t request, Inode& parent, const char* name, struct stat& attributes) {
    Inode* found = store_.look_up(parent, name, attributes);
    if (found == nullptr || attributes.st_nlink > 1 + (S_ISDIR(attributes.st_mode) ? 1U : 0U)) {
        return found;  // one more name of what was there
    }
    const struct fuse_ctx* caller = fuse_req_ctx(request);
    if (::geteuid() == 0 && (caller->uid != 0 || caller->gid != 0) &&
        ::fchownat(found->fd, "", caller->uid, caller->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0) {
        attributes.st_uid = caller->uid;
        attributes.st_gid = caller->gid;
    }
    const std::optional<WantedLayout> wanted = found->directory() ? store_.inherited(parent) : std::nullopt;
    if (wanted) {
        store_.set_inherited(*found, *wanted);
    }
    return found;
}

void Service::answer_entry(fuse_req_t request, Call what, Inode& parent, const char* name, int error, Time came) {
    struct stat attributes {};
    Inode* found = error == 0 ? made(request, parent, name, attributes) : nullptr;
    if (error == 0 && found == nullptr) {
        error = errno;
    }
    const FileId file = found != nullptr ? store_.file(*found, &parent) : store_.file(parent);
    Pace::Call(pace_, on_names(request, what, file), caller(request), came).wait();
    if (error != 0) {
        fuse_reply_err(request, error);
        return;
    }
    const struct fuse_entry_param entry = entry_of(*found, attributes);
    fuse_reply_entry(request, &entry);
}

/// `done` is the call on the store; 0 or -1 and errno.
template <class Done>
void Service::make(fuse_req_t request, Call what, fuse_ino_t parent, const char* name, Done done) {
    Inode& at = inode(parent);
    if (ours(at, name)) {
        fuse_reply_err(request, EPERM);
        return;
    }
    const Time came = pace_.now();
    answer_entry(request, what, at, name, done(at) == 0 ? 0 : errno, came);
}

void Service::mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
    make(request, Call::create, parent, name, [&](const Inode& at) { return ::mknodat(at.fd, name, mode, device); });
}

void Service::mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
    make(request, Call::mkdir, parent, name, [&](const Inode& at) { return ::mkdirat(at.fd, name, mode); });
}

void Service::symlink(fuse_req_t request, const char* text, fuse_ino_t parent, const char* name) {
    make(request, Call::create, parent, name, [&](const Inode& at) { return ::symlinkat(text, at.fd, name); });
}

void Service::link(fuse_req_t request, fuse_ino_t node, fuse_ino_t parent, const char* name) {
    const Inode& of = inode(node);
    if (of.control != nullptr) {
        fuse_reply_err(request, EPERM);
        return;
    }
    make(request, Call::create, parent, name, [&](const Inode& at) {
        return ::linkat(AT_FDCWD, DescriptorPath(of.fd).c_str(), at.fd, name, AT_SYMLINK_FOLLOW);
    });
}

void Service::take_away(fuse_req_t request, Call what, fuse_ino_t parent, const char* name, int flags) {
    Inode& at = inode(parent);
    if (ours(at, name)) {
        fuse_reply_err(request, EPERM);
        return;
    }
    Pace::Call call(pace_, on_names(request, what, store_.file(at)), caller(request));
    const int error = ::unlinkat(at.fd, name, flags) == 0 ? 0 : errno;
    call.wait();
    fuse_reply_err(request, error);
}

void Service::unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
    take_away(request, Call::remove, parent, name, 0);
}

void Service::rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) {
    take_away(request, Call::rmdir, parent, name, AT_REMOVEDIR);
}

void Service::rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t to, const char* to_name,
                     unsigned flags) {
    Inode& from = inode(parent);
    Inode& into = inode(to);
    if (ours(from, name) || ours(into, to_name)) {
        fuse_reply_err(request, EPERM);
        return;
    }
    Pace::Call call(pace_, on_names(request, Call::rename, store_.file(from)), caller(request));
    const int error = ::renameat2(from.fd, name, into.fd, to_name, flags) == 0 ? 0 : errno;
    call.wait();
    fuse_reply_err(request, error);
}

void Service::readlink(fuse_req_t request, fuse_ino_t node) {
    char text[PATH_MAX + 1];
    const ssize_t length = ::readlinkat(inode(node).fd, "", text, PATH_MAX);
    if (length < 0) {
        fuse_reply_err(request, errno);
        return;
    }
    text[length] = 0;
    fuse_reply_readlink(request, text);
}

void Service::opendir(fuse_req_t request, fuse_ino_t /*node*/, Info* info) {
    info->fh = reinterpret_cast<std::uintptr_t>(new Listing);
    fuse_reply_open(request, info);
}

/// All of a directory is read when its first entries are asked for: one call, as the machine has it. `seekdir` to the
/// beginning reads it again.
void Service::readdir(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset, Info* info) {
    Inode& directory = inode(node);
    Listing& listing = *kept<Listing>(info->fh);
    if (!listing.read || offset == 0) {
        listing.entries.clear();
        listing.read = true;
        if (directory.control != nullptr) {
            for (const ControlFile* file : directory.control->entries) {
                listing.entries.push_back({file->name, file->inode.number, file->inode.mode});
            }
        } else {
            const Time came = pace_.now();
            const int fd = ::openat(directory.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            DIR* stream = fd >= 0 ? ::fdopendir(fd) : nullptr;
            if (stream == nullptr) {
                fuse_reply_err(request, errno);
                return;
            }
            while (const dirent* one = ::readdir(stream)) {
                if (!ours(directory, one->d_name)) {
                    listing.entries.push_back({one->d_name, one->d_ino, static_cast<mode_t>(DTTOIF(one->d_type))});
                }
            }
            ::closedir(stream);
            Operation operation = on_names(request, Call::readdir, store_.file(directory));
            operation.length = listing.entries.size();
            Pace::Call(pace_, operation, caller(request), came).wait();
        }
    }
    std::vector<char> buffer(size);
    std::size_t used = 0;
    for (auto i = static_cast<std::size_t>(offset); i < listing.entries.size(); ++i) {
        struct stat attributes {};
        attributes.st_ino = listing.entries[i].number;
        attributes.st_mode = listing.entries[i].type;
        const std::size_t needed =
            fuse_add_direntry(request, buffer.data() + used, size - used, listing.entries[i].name.c_str(), &attributes,
                              static_cast<off_t>(i) + 1);
        if (needed > size - used) {
            break;
        }
        used += needed;
    }
    fuse_reply_buf(request, buffer.data(), used);
}

void Service::releasedir(fuse_req_t request, fuse_ino_t /*node*/, Info* info) {
    delete kept<Listing>(info->fh);
    fuse_reply_err(request, 0);
}

void Service::fsyncdir(fuse_req_t request, fuse_ino_t node, int /*only_data*/, Info* /*info*/) {
    const Inode& directory = inode(node);
    int error = 0;
    if (directory.control == nullptr) {
        const int fd = ::openat(directory.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error = fd >= 0 && ::fsync(fd) == 0 ? 0 : errno;
        if (fd >= 0) {
            ::close(fd);
        }
    }
    fuse_reply_err(request, error);
}

}  // namespace sonde::simulate
