// SPDX-License-Identifier: Apache-2.0
#include "mounted/service.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <linux/fuse.h>
#include <unistd.h>

namespace sonde::simulate {
namespace {

constexpr std::size_t largest_read = 1U << 20U;
#ifdef FOPEN_PARALLEL_DIRECT_WRITES
constexpr std::uint32_t parallel_writes = FOPEN_PARALLEL_DIRECT_WRITES;  // Linux 6.2
#else
constexpr std::uint32_t parallel_writes = 0;
#endif

/// The read buffer of this thread.
char* read_buffer() {
    struct ReleaseAligned {
        void operator()(void* memory) const { std::free(memory); }
    };
    thread_local const std::unique_ptr<void, ReleaseAligned> buffer(std::aligned_alloc(4096, largest_read));
    // The end of the thread frees the buffer. NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
    return static_cast<char*>(buffer.get());
}

/// Open flags for a file of the store. The kernel passes the offset of appended bytes, and buffers are not aligned.
int store_open_flags(int flags) {
    return (flags & ~(O_APPEND | O_DIRECT | O_NOFOLLOW | O_EXCL | O_CREAT)) | O_CLOEXEC;
}

struct fuse_entry_out to_kernel_entry(const struct fuse_entry_param& entry) {
    struct fuse_entry_out out {};
    out.nodeid = entry.ino;
    out.entry_valid = static_cast<std::uint64_t>(entry.entry_timeout);
    out.attr_valid = static_cast<std::uint64_t>(entry.attr_timeout);
    const struct stat& from = entry.attr;
    out.attr.ino = from.st_ino;
    out.attr.size = static_cast<std::uint64_t>(from.st_size);
    out.attr.blocks = static_cast<std::uint64_t>(from.st_blocks);
    out.attr.atime = static_cast<std::uint64_t>(from.st_atim.tv_sec);
    out.attr.mtime = static_cast<std::uint64_t>(from.st_mtim.tv_sec);
    out.attr.ctime = static_cast<std::uint64_t>(from.st_ctim.tv_sec);
    out.attr.atimensec = static_cast<std::uint32_t>(from.st_atim.tv_nsec);
    out.attr.mtimensec = static_cast<std::uint32_t>(from.st_mtim.tv_nsec);
    out.attr.ctimensec = static_cast<std::uint32_t>(from.st_ctim.tv_nsec);
    out.attr.mode = from.st_mode;
    out.attr.nlink = static_cast<std::uint32_t>(from.st_nlink);
    out.attr.uid = from.st_uid;
    out.attr.gid = from.st_gid;
    out.attr.rdev = static_cast<std::uint32_t>(from.st_rdev);
    out.attr.blksize = static_cast<std::uint32_t>(from.st_blksize);
    return out;
}

/// Removes and returns the first line of a text, without trailing white space.
std::string_view next_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) {
        line.remove_suffix(1);
    }
    return line;
}

}  // namespace

ModelOperation FuseService::make_file_operation(const OpenFile& file, ModelCallKind kind) {
    ModelOperation operation;
    operation.kind = kind;
    operation.stream = file.stream;
    operation.file = file.file;
    return operation;
}

void FuseService::create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, Info* info) {
    Inode& directory = inode(parent);
    if (is_control_name(directory, name)) {
        fuse_reply_err(request, EPERM);
        return;
    }
    const Time arrival = machine_.now();
    auto file = std::make_unique<OpenFile>();
    file->fd = ::openat(directory.fd, name,
                        store_open_flags(info->flags) | O_CREAT | (info->flags & O_EXCL) | O_NOFOLLOW, mode);
    struct stat attributes {};
    Inode* created = file->fd >= 0 ? find_new_inode(request, directory, name, attributes) : nullptr;
    const int error = errno;
    file->file = created != nullptr ? store_.get_file(*created, &directory) : store_.get_file(directory);
    RealTimeMachine::TimedCall(machine_, make_metadata_operation(request, ModelCallKind::create, file->file),
                               calling_thread(request), arrival)
        .wait();
    if (created == nullptr) {
        if (file->fd >= 0) {
            ::close(file->fd);
        }
        fuse_reply_err(request, error);
        return;
    }
    const struct fuse_entry_param entry = make_entry_reply(*created, attributes);
    reply_open(request, std::move(file), *info, &entry);
}

void FuseService::open(fuse_req_t request, fuse_ino_t node, Info* info) {
    Inode& inode_of_file = inode(node);
    if (inode_of_file.control != nullptr) {
        open_control(request, inode_of_file, info);
        return;
    }
    auto file = std::make_unique<OpenFile>();
    file->file = store_.get_file(inode_of_file);
    RealTimeMachine::TimedCall call(machine_, make_metadata_operation(request, ModelCallKind::open, file->file),
                                    calling_thread(request));
    file->fd = ::open(DescriptorPath(inode_of_file.fd).c_str(), store_open_flags(info->flags));
    const int error = errno;
    if (file->fd >= 0 && (info->flags & O_TRUNC) != 0) {
        machine_.call_machine([&](Machine& machine) { machine.resize_file(file->file, 0); });
    }
    call.wait();
    if (file->fd < 0) {
        fuse_reply_err(request, error);
        return;
    }
    reply_open(request, std::move(file), *info, nullptr);
}

/// libfuse 3.14 has no member for parallel writes, so the reply is built here in the kernel's format.
void FuseService::reply_open(fuse_req_t request, std::unique_ptr<OpenFile> file, const Info& info,
                             const fuse_entry_param* entry) {
    file->is_direct = (info.flags & O_DIRECT) != 0;
    file->is_sync = (info.flags & (O_SYNC | O_DSYNC)) != 0;
    const std::uint32_t client = program_nodes_.get_client(fuse_req_ctx(request)->pid);
    file->stream = machine_.call_machine([client](Machine& machine) { return machine.begin_stream(client); });
    struct OpenReply {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } answer{};
    answer.open.fh = reinterpret_cast<std::uintptr_t>(file.get());
    answer.open.open_flags = options_.kernel_cache ? FOPEN_KEEP_CACHE : FOPEN_DIRECT_IO | parallel_writes;
    int error = 0;
    if (entry != nullptr) {
        answer.entry = to_kernel_entry(*entry);
        error = fuse_reply_buf(request, reinterpret_cast<const char*>(&answer), sizeof answer);
    } else {
        error = fuse_reply_buf(request, reinterpret_cast<const char*>(&answer.open), sizeof answer.open);
    }
    if (error == -ENOENT) {  // the call was interrupted: the kernel will not release the file
        close_file(*file);
        return;
    }
    static_cast<void>(file.release());
}

void FuseService::close_file(const OpenFile& file) {
    machine_.call_machine([&](Machine& machine) { machine.end_stream(file.stream); });
    ::close(file.fd);
}

void FuseService::read(fuse_req_t request, fuse_ino_t /*node*/, std::size_t size, off_t offset, Info* info) {
    OpenFile& file = *cast_number_to_object<OpenFile>(info->fh);
    if (file.fd < 0) {
        const auto from = std::min(static_cast<std::size_t>(offset), file.text.size());
        fuse_reply_buf(request, file.text.data() + from, std::min(size, file.text.size() - from));
        return;
    }
    ModelOperation operation = make_file_operation(file, ModelCallKind::read);
    operation.direct = file.is_direct;
    operation.offset = static_cast<std::uint64_t>(offset);
    operation.length = size;
    char* buffer = read_buffer();
    RealTimeMachine::TimedCall call(machine_, operation, calling_thread(request));
    const ssize_t length = ::pread(file.fd, buffer, std::min(size, largest_read), offset);
    const int error = errno;
    call.wait();
    if (length < 0) {
        fuse_reply_err(request, error);
        return;
    }
    fuse_reply_buf(request, buffer, static_cast<std::size_t>(length));
}

void FuseService::write_buf(fuse_req_t request, fuse_ino_t node, struct fuse_bufvec* data, off_t offset, Info* info) {
    OpenFile& file = *cast_number_to_object<OpenFile>(info->fh);
    if (file.fd < 0) {
        write_control(request, inode(node), file, data);
        return;
    }
    ModelOperation operation = make_file_operation(file, ModelCallKind::write);
    operation.direct = file.is_direct;
    operation.sync = file.is_sync;
    operation.offset = static_cast<std::uint64_t>(offset);
    operation.length = fuse_buf_size(data);
    struct fuse_bufvec into = FUSE_BUFVEC_INIT(operation.length);
    into.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
    into.buf[0].fd = file.fd;
    into.buf[0].pos = offset;
    RealTimeMachine::TimedCall call(machine_, operation, calling_thread(request), machine_.request_arrival_time());
    const ssize_t length = fuse_buf_copy(&into, data, static_cast<fuse_buf_copy_flags>(0));
    call.wait();
    if (length < 0 || call.error() != 0) {
        fuse_reply_err(request, length < 0 ? static_cast<int>(-length) : call.error());
        return;
    }
    fuse_reply_write(request, static_cast<std::size_t>(length));
}

/// Called for each close of a descriptor, with the cost of a close.
void FuseService::flush(fuse_req_t request, fuse_ino_t /*node*/, Info* info) {
    const OpenFile& file = *cast_number_to_object<OpenFile>(info->fh);
    if (file.fd >= 0) {
        RealTimeMachine::TimedCall(machine_, make_file_operation(file, ModelCallKind::close), calling_thread(request))
            .wait();
    }
    fuse_reply_err(request, 0);
}

void FuseService::release(fuse_req_t request, fuse_ino_t /*node*/, Info* info) {
    const std::unique_ptr<OpenFile> file(cast_number_to_object<OpenFile>(info->fh));
    if (file->fd >= 0) {
        close_file(*file);
    }
    fuse_reply_err(request, 0);
}

void FuseService::fsync(fuse_req_t request, fuse_ino_t /*node*/, int only_data, Info* info) {
    const OpenFile& file = *cast_number_to_object<OpenFile>(info->fh);
    int error = 0;
    if (file.fd >= 0) {
        const RealTimeMachine::TimedCall call(machine_, make_file_operation(file, ModelCallKind::fsync),
                                              calling_thread(request));
        error = (only_data != 0 ? ::fdatasync(file.fd) : ::fsync(file.fd)) == 0 ? 0 : errno;
    }
    fuse_reply_err(request, error);
}

/// Takes no simulated time: the machine has no cost of allocation.
void FuseService::fallocate(fuse_req_t request, fuse_ino_t /*node*/, int mode, off_t offset, off_t length, Info* info) {
    const OpenFile& file = *cast_number_to_object<OpenFile>(info->fh);
    if (file.fd < 0 || ::fallocate(file.fd, mode, offset, length) != 0) {
        fuse_reply_err(request, file.fd < 0 ? EOPNOTSUPP : errno);
        return;
    }
    struct stat attributes {};
    if (::fstat(file.fd, &attributes) == 0) {
        const auto size = static_cast<std::uint64_t>(attributes.st_size);
        machine_.call_machine([&](Machine& machine) {
            if (machine.file_size(file.file) != size) {
                machine.resize_file(file.file, size);
            }
        });
    }
    fuse_reply_err(request, 0);
}

void FuseService::lseek(fuse_req_t request, fuse_ino_t /*node*/, off_t offset, int whence, Info* info) {
    const OpenFile& file = *cast_number_to_object<OpenFile>(info->fh);
    const off_t new_offset = file.fd < 0 ? -1 : ::lseek(file.fd, offset, whence);
    if (new_offset < 0) {
        fuse_reply_err(request, file.fd < 0 ? EINVAL : errno);
        return;
    }
    fuse_reply_lseek(request, new_offset);
}

void FuseService::open_control(fuse_req_t request, const Inode& inode, Info* info) {
    const ControlFile& control = *inode.control;
    const int access = info->flags & O_ACCMODE;
    if ((access != O_RDONLY && !control.write_line) || (access == O_RDONLY && !control.text)) {
        fuse_reply_err(request, EACCES);
        return;
    }
    auto file = std::make_unique<OpenFile>();
    file->text = control.text ? control.text() : std::string();
    info->fh = reinterpret_cast<std::uintptr_t>(file.release());
    info->direct_io = 1;
    fuse_reply_open(request, info);
}

/// Handles the written lines in order. The first invalid line ends the call with EINVAL; a read from the same
/// descriptor returns the reason.
void FuseService::write_control(fuse_req_t request, const Inode& inode, OpenFile& file, struct fuse_bufvec* data) {
    std::string text(fuse_buf_size(data), '\0');
    struct fuse_bufvec into = FUSE_BUFVEC_INIT(text.size());
    into.buf[0].mem = text.data();
    if (fuse_buf_copy(&into, data, static_cast<fuse_buf_copy_flags>(0)) < 0) {
        fuse_reply_err(request, EIO);
        return;
    }
    std::string_view remaining = text;
    while (!remaining.empty()) {
        const std::string_view line = next_line(remaining);
        try {
            if (!line.empty()) {
                inode.control->write_line(line);
            }
        } catch (const SystemModelError& error) {
            file.text = std::string(error.what()) + "\n";
            fuse_reply_err(request, EINVAL);
            return;
        }
    }
    fuse_reply_write(request, text.size());
}

}  // namespace sonde::simulate
