// SPDX-License-Identifier: Apache-2.0
// Answers the kernel. Each operation goes to the machine when it arrives, is done on the store meanwhile, and is
// answered when both have ended. names.cpp: what has a path; attributes.cpp: sizes, owners, extended attributes;
// data.cpp: bytes; session.cpp: the table of calls and the threads that serve them.
#pragma once

#include "mounted/callers.hpp"
#include "mounted/control_files.hpp"
#include "mounted/fuse.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sonde::simulate {

struct MountOptions {
    std::string directory;      ///< where the mount appears
    bool kernel_cache = false;  ///< the kernel keeps pages: programs may map files, and the machine sees what is left
    bool allow_other = false;   ///< other users may use it
    bool foreground = false;
    std::uint32_t nodes = 1;  ///< of the machine, to which programs are dealt
    unsigned threads = 256;   ///< that answer: as many operations may be under way
    Time spin = 0;            ///< of the clock, before the thread that waits for the next call sleeps
};

/// What a number stands for that the kernel keeps for us: its handles and inodes are addresses of ours.
template <typename Ours>
Ours* kept(std::uint64_t number) {
    return reinterpret_cast<Ours*>(number);
}

class Service {
 public:
    Service(Pace& pace, Store& store, ControlFiles& controls, const MountOptions& options);

    /// Mounts, serves until it is unmounted or told to end, and unmounts. `mounted` is called once it answers. An exit
    /// code: 0, or 3 when it cannot be mounted.
    int run();

 private:
    friend struct Calls;
    struct Handle;
    struct Listing;
    using Info = struct fuse_file_info;

    // names.cpp
    void lookup(fuse_req_t request, fuse_ino_t parent, const char* name);
    void forget(fuse_req_t request, fuse_ino_t node, std::uint64_t lookups);
    void forget_multi(fuse_req_t request, std::size_t count, struct fuse_forget_data* all);
    void mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device);
    void mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode);
    void symlink(fuse_req_t request, const char* text, fuse_ino_t parent, const char* name);
    void link(fuse_req_t request, fuse_ino_t node, fuse_ino_t parent, const char* name);
    void unlink(fuse_req_t request, fuse_ino_t parent, const char* name);
    void rmdir(fuse_req_t request, fuse_ino_t parent, const char* name);
    void rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t to, const char* to_name,
                unsigned flags);
    void readlink(fuse_req_t request, fuse_ino_t node);
    void opendir(fuse_req_t request, fuse_ino_t node, Info* info);
    void readdir(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset, Info* info);
    void releasedir(fuse_req_t request, fuse_ino_t node, Info* info);
    void fsyncdir(fuse_req_t request, fuse_ino_t node, int only_data, Info* info);
    // attributes.cpp
    void getattr(fuse_req_t request, fuse_ino_t node, Info* info);
    void setattr(fuse_req_t request, fuse_ino_t node, struct stat* attributes, int which, Info* info);
    void statfs(fuse_req_t request, fuse_ino_t node);
    void getxattr(fuse_req_t request, fuse_ino_t node, const char* name, std::size_t size);
    void setxattr(fuse_req_t request, fuse_ino_t node, const char* name, const char* value, std::size_t size,
                  int flags);
    void listxattr(fuse_req_t request, fuse_ino_t node, std::size_t size);
    void removexattr(fuse_req_t request, fuse_ino_t node, const char* name);
    // data.cpp
    void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, Info* info);
    void open(fuse_req_t request, fuse_ino_t node, Info* info);
    void read(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset, Info* info);
    void write_buf(fuse_req_t request, fuse_ino_t node, struct fuse_bufvec* data, off_t offset, Info* info);
    void flush(fuse_req_t request, fuse_ino_t node, Info* info);
    void release(fuse_req_t request, fuse_ino_t node, Info* info);
    void fsync(fuse_req_t request, fuse_ino_t node, int only_data, Info* info);
    void fallocate(fuse_req_t request, fuse_ino_t node, int mode, off_t offset, off_t length, Info* info);
    void lseek(fuse_req_t request, fuse_ino_t node, off_t offset, int whence, Info* info);

    Inode& inode(fuse_ino_t node) { return node == FUSE_ROOT_ID ? store_.root() : *kept<Inode>(node); }
    /// Not to be made, removed or moved: the name of the control files, and everything in there.
    bool ours(const Inode& parent, const char* name) const;
    /// The thread whose call it is.
    static pid_t caller(fuse_req_t request) { return fuse_req_ctx(request)->pid; }
    /// An operation on the names of `file`, by whoever makes the call.
    Operation on_names(fuse_req_t request, Call call, FileId file);
    /// An operation on the bytes of an open file.
    static Operation on_file(const Handle& handle, Call call);
    struct fuse_entry_param entry_of(Inode& inode, const struct stat& attributes) const;
    /// The inode of a name that was just made. Null: errno says why.
    Inode* made(fuse_req_t request, Inode& parent, const char* name, struct stat& attributes);
    /// Charges the call, which came at that time of the machine, and answers with what was made, or with the error.
    void answer_entry(fuse_req_t request, Call what, Inode& parent, const char* name, int error, Time came);
    /// Makes a name with `done` and answers; template of names.cpp alone.
    template <class Done>
    void make(fuse_req_t request, Call what, fuse_ino_t parent, const char* name, Done done);
    /// Removes a name; `flags` are those of unlinkat.
    void take_away(fuse_req_t request, Call what, fuse_ino_t parent, const char* name, int flags);
    void answer_open(fuse_req_t request, std::unique_ptr<Handle> handle, const Info& info,
                     const fuse_entry_param* entry);
    /// Ends what answer_open began.
    void close_handle(const Handle& handle);
    void open_control(fuse_req_t request, const Inode& inode, Info* info);
    void write_control(fuse_req_t request, const Inode& inode, Handle& handle, struct fuse_bufvec* data);

    Pace& pace_;
    Store& store_;
    ControlFiles& controls_;
    MountOptions options_;
    Callers callers_;
    std::atomic_flag spinning_ = ATOMIC_FLAG_INIT;  ///< a thread looks out for the next call: one is enough
};

/// An open file.
struct Service::Handle {
    int fd = -1;  ///< -1: a control file
    FileId file = 0;
    StreamId stream = 0;
    bool direct = false, sync = false;
    std::string text;  ///< of a control file: as it was when it was opened, or why it refused a line
};

}  // namespace sonde::simulate
