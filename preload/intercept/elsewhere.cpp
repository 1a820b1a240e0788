// SPDX-License-Identifier: Apache-2.0
// Streams of the C library and rings of the kernel: they move data without passing through our functions,
// so the files they use are left alone.
#include "intercept/c_streams.hpp"
#include "intercept/cxx_streams.hpp"
#include "intercept/errors.hpp"
#include "intercept/lifetime.hpp"

#include <fcntl.h>

namespace {

using namespace sonde;

/// Releases the file, because stdio is about to open it and to access it without intercepted calls.
void leave_path_to_stdio(Path path) noexcept {
    dev_t device = 0;
    ino_t inode = 0;
    const bool may_be_known =
        buffer::may_break_own_lease(path) || buffer::unguarded_files.load(std::memory_order_relaxed) != 0;
    if (may_be_known && intercept::find_inode_of_path(AT_FDCWD, path, true, device, inode)) {
        buffer::release_file_of_inode(device, inode, "also opened by the C library's streams");
    }
}

int convert_mode_to_flags(const char* mode) noexcept {
    const bool both = __builtin_strchr(mode, '+') != nullptr;
    return both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
}

/// Opens a file for a C++ stream, which accesses it through intercepted calls only, like any other file.
template <class Real>
FILE* open_cxx_stream(Path path, const char* mode, Real real) {
    const std::uint64_t began = trace::is_tracing() ? system::ticks() : 0;
    const auto open = [&] {
        FILE* stream = real();
        if (stream != nullptr) {
            const int fd = fileno(stream);
            intercept::consider_opened(fd, static_cast<int>(raw::call(SYS_fcntl, fd, F_GETFL)), path, began);
        }
        return stream;
    };
    if (intercept::opens_buffered_file(path, mode[0] == 'w' ? O_TRUNC : 0)) {
        const intercept::PassThroughPath around(AT_FDCWD, path,
                                                true);  // what was written before must not arrive afterwards
        return open();
    }
    return open();
}

template <class Real>
FILE* open_stream(Path path, const char* mode, const void* caller, Real real) {
    if ((buffer::table != nullptr || trace::is_tracing()) && path != nullptr && mode != nullptr &&
        intercept::is_cxx_stream(caller)) [[unlikely]] {
        return open_cxx_stream(path, mode, real);
    }
    leave_path_to_stdio(path);
    const std::uint64_t began = trace::is_tracing() ? system::ticks() : 0;
    FILE* stream = real();
    if (stream != nullptr && buffer::table != nullptr && mode != nullptr && path != nullptr &&
        !intercept::is_in_vfork_child()) [[unlikely]] {
        const char* const reason = intercept::enlarge_stream_buffer(stream, path, mode)
                                       ? "a stream of the C library, which got a larger buffer (stdio=alone)"
                                       : "opened by the C library's streams";
        buffer::consider_opened_descriptor(fileno(stream), convert_mode_to_flags(mode), path, reason);
    }
    if (stream != nullptr && trace::is_tracing() && mode != nullptr && path != nullptr) [[unlikely]] {
        trace::record_open(fileno(stream), convert_mode_to_flags(mode), path,
                           began);  // what the stream does itself is not seen
    }
    return stream;
}

/// Returns the error of a delayed write that fclose() must report, or 0.
int detach_stream(FILE* stream) noexcept {
    const int fd = stream != nullptr ? fileno(stream) : -1;
    if (intercept::is_in_vfork_child()) {
        return 0;
    }
    if (buffer::is_watched_descriptor(fd)) {
        return buffer::detach_descriptor(fd);
    }
    buffer::forget_candidate(fd);
    if (trace::is_traced_descriptor(fd)) {
        trace::record_close(fd, system::ticks());
    }
    return 0;
}

template <class Real>
auto disable_buffering_for_rings(Real real) {
    buffer::disable_buffering("the program uses I/O rings, which work without calls that could be seen");
    return real();
}

}  // namespace

FILE* wrap_fopen(Path path, const char* mode) {
    return open_stream(path, mode, __builtin_return_address(0), [=] { return NEXT(fopen)(path, mode); });
}
FILE* wrap_fopen64(Path path, const char* mode) {
    return open_stream(path, mode, __builtin_return_address(0), [=] { return NEXT(fopen64)(path, mode); });
}
FILE* wrap_freopen(Path path, const char* mode, FILE* stream) {
    detach_stream(stream);
    return open_stream(path, mode, __builtin_return_address(0), [=] { return NEXT(freopen)(path, mode, stream); });
}
FILE* wrap_freopen64(Path path, const char* mode, FILE* stream) {
    detach_stream(stream);
    return open_stream(path, mode, __builtin_return_address(0), [=] { return NEXT(freopen64)(path, mode, stream); });
}
FILE* wrap_fdopen(int fd, const char* mode) {
    buffer::exclude_descriptor(fd);
    buffer::release_file_of_descriptor(fd, "used by a stream of the C library");
    return NEXT(fdopen)(fd, mode);
}
int wrap_fcloseall(void) {
    // Files of C streams are released in any case, those of C++ are not. adopt_descriptor() finds out which file gets a
    // descriptor number next.
    buffer::disable_buffering("all streams are closed at once");
    return NEXT(fcloseall)();
}
int wrap_fclose(FILE* stream) {
    const int error = detach_stream(stream);
    const intercept::ClosingStream closing(stream);
    const int done = NEXT(fclose)(stream);
    if (error != 0 && done == 0) {
        errno = error;
        return EOF;
    }
    return done;
}

/// stdio_filebuf::file(), an extension of libstdc++: hands out the FILE of a stream of C++. Who has it may use it.
FILE* wrap__ZNSt12__basic_fileIcE4fileEv(void* self) {
    FILE* stream = NEXT_OF_CALLER(_ZNSt12__basic_fileIcE4fileEv)(self);
    if (stream != nullptr) {
        buffer::exclude_descriptor(fileno(stream));
        buffer::release_file_of_descriptor(fileno(stream), "the program asked for the FILE of a stream of C++");
    }
    return stream;
}

int wrap_io_setup(int events, void* context) {
    auto* const real = NEXT_OF_CALLER(io_setup);
    return disable_buffering_for_rings([=] { return real(events, context); });
}
int wrap_io_queue_init(int events, void* context) {
    auto* const real = NEXT_OF_CALLER(io_queue_init);
    return disable_buffering_for_rings([=] { return real(events, context); });
}
int wrap_io_uring_setup(unsigned entries, void* parameters) {
    auto* const real = NEXT_OF_CALLER(io_uring_setup);
    return disable_buffering_for_rings([=] { return real(entries, parameters); });
}
int wrap_io_uring_queue_init(unsigned entries, void* ring, unsigned flags) {
    auto* const real = NEXT_OF_CALLER(io_uring_queue_init);
    return disable_buffering_for_rings([=] { return real(entries, ring, flags); });
}
int wrap_io_uring_queue_init_params(unsigned entries, void* ring, void* parameters) {
    auto* const real = NEXT_OF_CALLER(io_uring_queue_init_params);
    return disable_buffering_for_rings([=] { return real(entries, ring, parameters); });
}
int wrap_io_uring_queue_init_mem(unsigned entries, void* ring, void* parameters, void* memory, size_t bytes) {
    auto* const real = NEXT_OF_CALLER(io_uring_queue_init_mem);
    return disable_buffering_for_rings([=] { return real(entries, ring, parameters, memory, bytes); });
}
