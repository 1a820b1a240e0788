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

/// Of the thread that serves a read.
char* read_buffer() {
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    thread_local const std::unique_ptr<void, Free> buffer(std::aligned_alloc(4096, largest_read));
    // What is freed at the end of the thread is not freed here. NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
    return static_cast<char*>(buffer.get());
}

/// Flags for the file below. The kernel says at which offset bytes are appended, and its pages need no alignment here.
int below(int flags) {
    return (flags & ~(O_APPEND | O_DIRECT | O_NOFOLLOW | O_EXCL | O_CREAT)) | O_CLOEXEC;
}

struct fuse_entry_out in_kernel_form(const struct fuse_entry_param& entry) {
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

/// One line of many, without white space around it.
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

Operation Service::on_file(const Handle& handle, Call call) {
    Operation operation;
    operation.call = call;
    operation.stream = handle.stream;
    operation.file = handle.file;
    return operation;
}

void Service::create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, Info* info) {
    Inode& at = inode(parent);
    if (ours(at, name)) {
        fuse_reply_err(request, EPERM);
        return;
    }
    const Time came = pace_.now();
    auto handle = std::make_unique<Handle>();
    handle->fd = ::openat(at.fd, name, below(info->flags) | O_CREAT | (info->flags & O_EXCL) | O_NOFOLLOW, mode);
    struct stat attributes {};
    Inode* found = handle->fd >= 0 ? made(request, at, name, attributes) : nullptr;
    const int error = errno;
    handle->file = found != nullptr ? store_.file(*found, &at) : store_.file(at);
    Pace::Call(pace_, on_names(request, Call::create, handle->file), caller(request), came).wait();
    if (found == nullptr) {
        if (handle->fd >= 0) {
            ::close(handle->fd);
        }
        fuse_reply_err(request, error);
        return;
    }
    const struct fuse_entry_param entry = entry_of(*found, attributes);
    answer_open(request, std::move(handle), *info, &entry);
}

void Service::open(fuse_req_t request, fuse_ino_t node, Info* info) {
    Inode& of = inode(node);
    if (of.control != nullptr) {
        open_control(request, of, info);
        return;
    }
    auto handle = std::make_unique<Handle>();
    handle->file = store_.file(of);
    Pace::Call call(pace_, on_names(request, Call::open, handle->file), caller(request));
    handle->fd = ::open(DescriptorPath(of.fd).c_str(), below(info->flags));
    const int error = errno;
    if (handle->fd >= 0 && (info->flags & O_TRUNC) != 0) {
        pace_.with([&](Machine& machine) { machine.resize(handle->file, 0); });
    }
    call.wait();
    if (handle->fd < 0) {
        fuse_reply_err(request, error);
        return;
    }
    answer_open(request, std::move(handle), *info, nullptr);
}

/// libfuse 3.14 has no word for writes that go on side by side, so the answer is put together here, in the kernel's
/// form.
void Service::answer_open(fuse_req_t request, std::unique_ptr<Handle> handle, const Info& info,
                          const fuse_entry_param* entry) {
    handle->direct = (info.flags & O_DIRECT) != 0;
    handle->sync = (info.flags & (O_SYNC | O_DSYNC)) != 0;
    const std::uint32_t client = callers_.client_of(fuse_req_ctx(request)->pid);
    handle->stream = pace_.with([client](Machine& machine) { return machine.stream(client); });
    struct Answer {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } answer{};
    answer.open.fh = reinterpret_cast<std::uintptr_t>(handle.get());
    answer.open.open_flags = options_.kernel_cache ? FOPEN_KEEP_CACHE : FOPEN_DIRECT_IO | parallel_writes;
    int answered = 0;
    if (entry != nullptr) {
        answer.entry = in_kernel_form(*entry);
        answered = fuse_reply_buf(request, reinterpret_cast<const char*>(&answer), sizeof answer);
    } else {
        answered = fuse_reply_buf(request, reinterpret_cast<const char*>(&answer.open), sizeof answer.open);
    }
    if (answered == -ENOENT) {  // the caller was interrupted: nobody will release it
        close_handle(*handle);
        return;
    }
    static_cast<void>(handle.release());
}

void Service::close_handle(const Handle& handle) {
    pace_.with([&](Machine& machine) { machine.end_stream(handle.stream); });
    ::close(handle.fd);
}

void Service::read(fuse_req_t request, fuse_ino_t /*node*/, std::size_t size, off_t offset, Info* info) {
    Handle& handle = *kept<Handle>(info->fh);
    if (handle.fd < 0) {
        const auto from = std::min(static_cast<std::size_t>(offset), handle.text.size());
        fuse_reply_buf(request, handle.text.data() + from, std::min(size, handle.text.size() - from));
        return;
    }
    Operation operation = on_file(handle, Call::read);
    operation.direct = handle.direct;
    operation.offset = static_cast<std::uint64_t>(offset);
    operation.length = size;
    char* buffer = read_buffer();
    Pace::Call call(pace_, operation, caller(request));
    const ssize_t length = ::pread(handle.fd, buffer, std::min(size, largest_read), offset);
    const int error = errno;
    call.wait();
    if (length < 0) {
        fuse_reply_err(request, error);
        return;
    }
    fuse_reply_buf(request, buffer, static_cast<std::size_t>(length));
}

void Service::write_buf(fuse_req_t request, fuse_ino_t node, struct fuse_bufvec* data, off_t offset, Info* info) {
    Handle& handle = *kept<Handle>(info->fh);
    if (handle.fd < 0) {
        write_control(request, inode(node), handle, data);
        return;
    }
    Operation operation = on_file(handle, Call::write);
    operation.direct = handle.direct;
    operation.sync = handle.sync;
    operation.offset = static_cast<std::uint64_t>(offset);
    operation.length = fuse_buf_size(data);
    struct fuse_bufvec into = FUSE_BUFVEC_INIT(operation.length);
    into.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
    into.buf[0].fd = handle.fd;
    into.buf[0].pos = offset;
    Pace::Call call(pace_, operation, caller(request), pace_.came());
    const ssize_t length = fuse_buf_copy(&into, data, static_cast<fuse_buf_copy_flags>(0));
    call.wait();
    if (length < 0) {
        fuse_reply_err(request, static_cast<int>(-length));
        return;
    }
    fuse_reply_write(request, static_cast<std::size_t>(length));
}

/// Of each close of a descriptor; what it costs is that of a close.
void Service::flush(fuse_req_t request, fuse_ino_t /*node*/, Info* info) {
    const Handle& handle = *kept<Handle>(info->fh);
    if (handle.fd >= 0) {
        Pace::Call(pace_, on_file(handle, Call::close), caller(request)).wait();
    }
    fuse_reply_err(request, 0);
}

void Service::release(fuse_req_t request, fuse_ino_t /*node*/, Info* info) {
    const std::unique_ptr<Handle> handle(kept<Handle>(info->fh));
    if (handle->fd >= 0) {
        close_handle(*handle);
    }
    fuse_reply_err(request, 0);
}

void Service::fsync(fuse_req_t request, fuse_ino_t /*node*/, int only_data, Info* info) {
    const Handle& handle = *kept<Handle>(info->fh);
    int error = 0;
    if (handle.fd >= 0) {
        const Pace::Call call(pace_, on_file(handle, Call::fsync), caller(request));
        error = (only_data != 0 ? ::fdatasync(handle.fd) : ::fsync(handle.fd)) == 0 ? 0 : errno;
    }
    fuse_reply_err(request, error);
}

/// Free but for the path of the call: the machine has no allocation of its own.
void Service::fallocate(fuse_req_t request, fuse_ino_t /*node*/, int mode, off_t offset, off_t length, Info* info) {
    const Handle& handle = *kept<Handle>(info->fh);
    if (handle.fd < 0 || ::fallocate(handle.fd, mode, offset, length) != 0) {
        fuse_reply_err(request, handle.fd < 0 ? EOPNOTSUPP : errno);
        return;
    }
    struct stat attributes {};
    if (::fstat(handle.fd, &attributes) == 0) {
        const auto size = static_cast<std::uint64_t>(attributes.st_size);
        pace_.with([&](Machine& machine) {
            if (machine.size(handle.file) != size) {
                machine.resize(handle.file, size);
            }
        });
    }
    fuse_reply_err(request, 0);
}

void Service::lseek(fuse_req_t request, fuse_ino_t /*node*/, off_t offset, int whence, Info* info) {
    const Handle& handle = *kept<Handle>(info->fh);
    const off_t found = handle.fd < 0 ? -1 : ::lseek(handle.fd, offset, whence);
    if (found < 0) {
        fuse_reply_err(request, handle.fd < 0 ? EINVAL : errno);
        return;
    }
    fuse_reply_lseek(request, found);
}

void Service::open_control(fuse_req_t request, const Inode& of, Info* info) {
    const ControlFile& file = *of.control;
    const int access = info->flags & O_ACCMODE;
    if ((access != O_RDONLY && !file.take) || (access == O_RDONLY && !file.text)) {
        fuse_reply_err(request, EACCES);
        return;
    }
    auto handle = std::make_unique<Handle>();
    handle->text = file.text ? file.text() : std::string();
    info->fh = reinterpret_cast<std::uintptr_t>(handle.release());
    info->direct_io = 1;
    fuse_reply_open(request, info);
}

/// Lines, one after the other; the first that is wrong ends it with EINVAL, and whoever reads through the same
/// descriptor learns why.
void Service::write_control(fuse_req_t request, const Inode& of, Handle& handle, struct fuse_bufvec* data) {
    std::string text(fuse_buf_size(data), '\0');
    struct fuse_bufvec into = FUSE_BUFVEC_INIT(text.size());
    into.buf[0].mem = text.data();
    if (fuse_buf_copy(&into, data, static_cast<fuse_buf_copy_flags>(0)) < 0) {
        fuse_reply_err(request, EIO);
        return;
    }
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::string_view line = next_line(rest);
        try {
            if (!line.empty()) {
                of.control->take(line);
            }
        } catch (const SiteError& error) {
            handle.text = std::string(error.what()) + "\n";
            fuse_reply_err(request, EINVAL);
            return;
        }
    }
    fuse_reply_write(request, text.size());
}

}  // namespace sonde::simulate
