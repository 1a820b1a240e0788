// SPDX-License-Identifier: Apache-2.0
// Serves the calls of the kernel (FUSE). An operation is submitted to the machine when it arrives, performed on the
// store meanwhile, and answered when both are done. names.cpp has the calls on names, attributes.cpp those on
// attributes, file_data.cpp those on open files, session.cpp the table of calls and the threads.
#pragma once

#include "mounted/control_files.hpp"
#include "mounted/fuse.hpp"
#include "mounted/program_nodes.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sonde::simulate {

struct MountOptions {
    std::string directory;  ///< mount point
    std::string log;        ///< file for messages from the background; empty: none
    bool kernel_cache =
        false;  ///< the kernel caches pages: programs may map files, and the machine gets only the misses
    bool allow_other = false;  ///< other users have access
    bool foreground = false;
    std::uint32_t nodes = 1;  ///< of the machine, that programs are assigned to
    unsigned threads = 256;   ///< that serve calls: limit of the operations in flight
    Time spin_time = 0;       ///< ns of busy waiting for the next call before a thread sleeps
};

/// The object of a handle or inode number of the kernel: the number is the address.
template <typename Object>
Object* cast_number_to_object(std::uint64_t number) {
    return reinterpret_cast<Object*>(number);
}

/// An open file.
struct OpenFile {
    int fd = -1;  ///< -1: a control file
    FileId file = 0;
    StreamId stream = 0;
    bool is_direct = false, is_sync = false;
    std::string text;  ///< of a control file: its content when it was opened, or the error of a written line
};

class FuseService {
 public:
    FuseService(RealTimeMachine& machine, Store& store, ControlFiles& controls, const MountOptions& options);

    /// Mounts, serves until an unmount or a signal, and unmounts. Returns 0, or 3 when the mount or a call of it fails.
    /// A thread that throws, and errors of libfuse, leave a line in the log.
    int run();

 private:
    friend struct FuseCallbacks;
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
    // file_data.cpp
    void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, Info* info);
    void open(fuse_req_t request, fuse_ino_t node, Info* info);
    void read(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset, Info* info);
    void write_buf(fuse_req_t request, fuse_ino_t node, struct fuse_bufvec* data, off_t offset, Info* info);
    void flush(fuse_req_t request, fuse_ino_t node, Info* info);
    void release(fuse_req_t request, fuse_ino_t node, Info* info);
    void fsync(fuse_req_t request, fuse_ino_t node, int only_data, Info* info);
    void fallocate(fuse_req_t request, fuse_ino_t node, int mode, off_t offset, off_t length, Info* info);
    void lseek(fuse_req_t request, fuse_ino_t node, off_t offset, int whence, Info* info);

    Inode& inode(fuse_ino_t node) { return node == FUSE_ROOT_ID ? store_.root() : *cast_number_to_object<Inode>(node); }
    /// Whether a name is that of the control directory or inside of it. Programs cannot create, remove or rename it.
    bool is_control_name(const Inode& parent, const char* name) const;
    /// The thread that makes the call.
    static pid_t calling_thread(fuse_req_t request) { return fuse_req_ctx(request)->pid; }
    /// A metadata operation on `file` by the calling thread.
    ModelOperation make_metadata_operation(fuse_req_t request, ModelCallKind kind, FileId file);
    /// An operation on an open file.
    static ModelOperation make_file_operation(const OpenFile& file, ModelCallKind kind);
    struct fuse_entry_param make_entry_reply(Inode& inode, const struct stat& attributes) const;
    /// The inode of a name that was just created. Null: errno is set.
    Inode* find_new_inode(fuse_req_t request, Inode& parent, const char* name, struct stat& attributes);
    /// Completes a create call that arrived at that time of the machine, and replies with the new entry or the error.
    void reply_created(fuse_req_t request, ModelCallKind kind, Inode& parent, const char* name, int error,
                       Time arrival);
    /// Creates a name with `action` and replies. Defined in names.cpp.
    template <class Action>
    void create_name(fuse_req_t request, ModelCallKind kind, fuse_ino_t parent, const char* name, Action action);
    /// Removes a name. `flags` are those of unlinkat(2).
    void remove_name(fuse_req_t request, ModelCallKind kind, fuse_ino_t parent, const char* name, int flags);
    void reply_open(fuse_req_t request, std::unique_ptr<OpenFile> file, const Info& info,
                    const fuse_entry_param* entry);
    /// Closes a file of reply_open().
    void close_file(const OpenFile& file);
    void open_control(fuse_req_t request, const Inode& inode, Info* info);
    void write_control(fuse_req_t request, const Inode& inode, OpenFile& file, struct fuse_bufvec* data);

    RealTimeMachine& machine_;
    Store& store_;
    ControlFiles& controls_;
    MountOptions options_;
    ProgramNodes program_nodes_;
    std::atomic_flag spinning_ = ATOMIC_FLAG_INIT;  ///< set while a thread waits busily for the next call
};

}  // namespace sonde::simulate
