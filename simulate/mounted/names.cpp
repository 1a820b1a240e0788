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

/// The kernel caches names this long, in seconds, since nobody else changes them. It does not cache attributes, so that
/// the machine gets each stat.
constexpr double name_timeout_s = 86400;

}  // namespace

struct DirectoryListing {
    struct ListedEntry {
        std::string name;
        ino_t number;
        mode_t type;
    };
    std::vector<ListedEntry> entries;
    bool is_loaded = false;
};

bool FuseService::is_control_name(const Inode& parent, const char* name) const {
    return parent.control != nullptr || (&parent == &store_.root() && std::strcmp(name, control_directory_name) == 0);
}

ModelOperation FuseService::make_metadata_operation(fuse_req_t request, ModelCallKind kind, FileId file) {
    ModelOperation operation;
    operation.kind = kind;
    operation.file = file;
    operation.stream = program_nodes_.get_metadata_stream(fuse_req_ctx(request)->pid);
    return operation;
}

struct fuse_entry_param FuseService::make_entry_reply(Inode& inode, const struct stat& attributes) const {
    struct fuse_entry_param entry {};
    entry.ino = reinterpret_cast<fuse_ino_t>(&inode);
    entry.attr = attributes;
    entry.entry_timeout = name_timeout_s;
    // With allow_other, the kernel checks the permissions of each directory of a path.
    entry.attr_timeout = options_.allow_other && inode.is_directory() ? name_timeout_s : 0;
    return entry;
}

/// Takes no time: a call on a path is one message to a metadata server, whose cost is that of the call itself.
void FuseService::lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
    Inode& directory = inode(parent);
    if (is_control_name(directory, name)) {
        ControlFile* file = directory.control == nullptr
                                ? &controls_.root()
                                : ControlFiles::find(const_cast<ControlFile&>(*directory.control), name);
        if (file == nullptr) {
            fuse_reply_err(request, ENOENT);
            return;
        }
        const struct fuse_entry_param entry = make_entry_reply(file->inode, ControlFiles::get_attributes(*file));
        fuse_reply_entry(request, &entry);
        return;
    }
    struct stat attributes {};
    Inode* created = store_.look_up_inode(directory, name, attributes);
    if (created == nullptr) {
        fuse_reply_err(request, errno);
        return;
    }
    const struct fuse_entry_param entry = make_entry_reply(*created, attributes);
    fuse_reply_entry(request, &entry);
}

void FuseService::forget(fuse_req_t request, fuse_ino_t node, std::uint64_t lookups) {
    store_.release_lookups(inode(node), lookups);
    fuse_reply_none(request);
}

void FuseService::forget_multi(fuse_req_t request, std::size_t count, struct fuse_forget_data* forgotten) {
    for (std::size_t i = 0; i < count; ++i) {
        store_.release_lookups(inode(forgotten[i].ino), forgotten[i].nlookup);
    }
    fuse_reply_none(request);
}

/// Sets the owner to the calling user. A new directory inherits the layout of its parent.
Inode* FuseService::find_new_inode(fuse_req_t request, Inode& parent, const char* name, struct stat& attributes) {
    Inode* created = store_.look_up_inode(parent, name, attributes);
    if (created == nullptr || attributes.st_nlink > 1 + (S_ISDIR(attributes.st_mode) ? 1U : 0U)) {
        return created;  // a further name of an existing file
    }
    const struct fuse_ctx* caller = fuse_req_ctx(request);
    if (::geteuid() == 0 && (caller->uid != 0 || caller->gid != 0) &&
        ::fchownat(created->fd, "", caller->uid, caller->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0) {
        attributes.st_uid = caller->uid;
        attributes.st_gid = caller->gid;
    }
    const std::optional<RequestedLayout> requested =
        created->is_directory() ? store_.get_inherited_layout(parent) : std::nullopt;
    if (requested) {
        store_.set_inherited_layout(*created, *requested);
    }
    return created;
}

void FuseService::reply_created(fuse_req_t request, ModelCallKind kind, Inode& parent, const char* name, int error,
                                Time arrival) {
    struct stat attributes {};
    Inode* created = error == 0 ? find_new_inode(request, parent, name, attributes) : nullptr;
    if (error == 0 && created == nullptr) {
        error = errno;
    }
    const FileId file = created != nullptr ? store_.get_file(*created, &parent) : store_.get_file(parent);
    RealTimeMachine::TimedCall(machine_, make_metadata_operation(request, kind, file), calling_thread(request), arrival)
        .wait();
    if (error != 0) {
        fuse_reply_err(request, error);
        return;
    }
    const struct fuse_entry_param entry = make_entry_reply(*created, attributes);
    fuse_reply_entry(request, &entry);
}

/// `action` performs the call on the store and returns 0, or -1 with errno.
template <class Action>
void FuseService::create_name(fuse_req_t request, ModelCallKind kind, fuse_ino_t parent, const char* name,
                              Action action) {
    Inode& directory = inode(parent);
    if (is_control_name(directory, name)) {
        fuse_reply_err(request, EPERM);
        return;
    }
    const Time arrival = machine_.now();
    reply_created(request, kind, directory, name, action(directory) == 0 ? 0 : errno, arrival);
}

void FuseService::mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
    create_name(request, ModelCallKind::create, parent, name,
                [&](const Inode& directory) { return ::mknodat(directory.fd, name, mode, device); });
}

void FuseService::mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
    create_name(request, ModelCallKind::mkdir, parent, name,
                [&](const Inode& directory) { return ::mkdirat(directory.fd, name, mode); });
}

void FuseService::symlink(fuse_req_t request, const char* text, fuse_ino_t parent, const char* name) {
    create_name(request, ModelCallKind::create, parent, name,
                [&](const Inode& directory) { return ::symlinkat(text, directory.fd, name); });
}

void FuseService::link(fuse_req_t request, fuse_ino_t node, fuse_ino_t parent, const char* name) {
    const Inode& file = inode(node);
    if (file.control != nullptr) {
        fuse_reply_err(request, EPERM);
        return;
    }
    create_name(request, ModelCallKind::create, parent, name, [&](const Inode& directory) {
        return ::linkat(AT_FDCWD, DescriptorPath(file.fd).c_str(), directory.fd, name, AT_SYMLINK_FOLLOW);
    });
}

void FuseService::remove_name(fuse_req_t request, ModelCallKind kind, fuse_ino_t parent, const char* name, int flags) {
    Inode& directory = inode(parent);
    if (is_control_name(directory, name)) {
        fuse_reply_err(request, EPERM);
        return;
    }
    RealTimeMachine::TimedCall call(machine_, make_metadata_operation(request, kind, store_.get_file(directory)),
                                    calling_thread(request));
    const int error = ::unlinkat(directory.fd, name, flags) == 0 ? 0 : errno;
    call.wait();
    fuse_reply_err(request, error);
}

void FuseService::unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
    remove_name(request, ModelCallKind::remove, parent, name, 0);
}

void FuseService::rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) {
    remove_name(request, ModelCallKind::rmdir, parent, name, AT_REMOVEDIR);
}

void FuseService::rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t to, const char* to_name,
                         unsigned flags) {
    Inode& from = inode(parent);
    Inode& into = inode(to);
    if (is_control_name(from, name) || is_control_name(into, to_name)) {
        fuse_reply_err(request, EPERM);
        return;
    }
    RealTimeMachine::TimedCall call(machine_,
                                    make_metadata_operation(request, ModelCallKind::rename, store_.get_file(from)),
                                    calling_thread(request));
    const int error = ::renameat2(from.fd, name, into.fd, to_name, flags) == 0 ? 0 : errno;
    call.wait();
    fuse_reply_err(request, error);
}

void FuseService::readlink(fuse_req_t request, fuse_ino_t node) {
    char text[PATH_MAX + 1];
    const ssize_t length = ::readlinkat(inode(node).fd, "", text, PATH_MAX);
    if (length < 0) {
        fuse_reply_err(request, errno);
        return;
    }
    text[length] = 0;
    fuse_reply_readlink(request, text);
}

void FuseService::opendir(fuse_req_t request, fuse_ino_t /*node*/, Info* info) {
    info->fh = reinterpret_cast<std::uintptr_t>(new DirectoryListing);
    fuse_reply_open(request, info);
}

/// Reads the whole directory with its first entries: one call of the machine. `seekdir` to the begin reads it again.
void FuseService::readdir(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset, Info* info) {
    Inode& directory = inode(node);
    DirectoryListing& listing = *cast_number_to_object<DirectoryListing>(info->fh);
    if (!listing.is_loaded || offset == 0) {
        listing.entries.clear();
        listing.is_loaded = true;
        if (directory.control != nullptr) {
            for (const ControlFile* file : directory.control->entries) {
                listing.entries.push_back({file->name, file->inode.number, file->inode.mode});
            }
        } else {
            const Time arrival = machine_.now();
            const int fd = ::openat(directory.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            DIR* stream = fd >= 0 ? ::fdopendir(fd) : nullptr;
            if (stream == nullptr) {
                fuse_reply_err(request, errno);
                return;
            }
            while (const dirent* entry = ::readdir(stream)) {
                if (!is_control_name(directory, entry->d_name)) {
                    listing.entries.push_back(
                        {entry->d_name, entry->d_ino, static_cast<mode_t>(DTTOIF(entry->d_type))});
                }
            }
            ::closedir(stream);
            ModelOperation operation =
                make_metadata_operation(request, ModelCallKind::readdir, store_.get_file(directory));
            operation.length = listing.entries.size();
            RealTimeMachine::TimedCall(machine_, operation, calling_thread(request), arrival).wait();
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

void FuseService::releasedir(fuse_req_t request, fuse_ino_t /*node*/, Info* info) {
    delete cast_number_to_object<DirectoryListing>(info->fh);
    fuse_reply_err(request, 0);
}

void FuseService::fsyncdir(fuse_req_t request, fuse_ino_t node, int /*only_data*/, Info* /*info*/) {
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
