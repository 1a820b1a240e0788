// SPDX-License-Identifier: Apache-2.0
#include "intercept/lifetime.hpp"

#include "intercept/c_streams.hpp"

#include "intercept/errors.hpp"
#include "intercept/process_settings.hpp"
#include "system/high_descriptor.hpp"
#include "system/memory.hpp"
#include "system/oldest_libc.hpp"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <cstdlib>
#include <cstring>

extern "C" {
extern void* __dso_handle;
// What pthread_atfork() and at_quick_exit() call in glibc; musl has neither, and would not load the library for them.
[[gnu::weak]] int __register_atfork(void (*)(), void (*)(), void (*)(), void*) noexcept;
[[gnu::weak]] int __cxa_at_quick_exit(void (*)(void*), void*) noexcept;
[[gnu::weak]] void __tsan_init();  // of ThreadSanitizer
}
SONDE_OLDEST(dlsym);

namespace sonde::intercept {

namespace {

settings::Settings* chosen = nullptr;
int report_descriptor = -1;
void* vfork_behind = nullptr;

ssize_t pread_below(int fd, void* data, std::size_t bytes, off64_t offset) {
    return NEXT(pread64)(fd, data, bytes, offset);
}
ssize_t pwrite_below(int fd, const void* data, std::size_t bytes, off64_t offset) {
    return NEXT(pwrite64)(fd, data, bytes, offset);
}

void open_report() noexcept {
    const long duplicate = system::high_duplicate(static_cast<int>(2));
    report_descriptor = duplicate >= 0 ? static_cast<int>(duplicate) : -1;
}

void buffer_standard_output() noexcept {
    struct stat got {};
    if (chosen->standard_output_bytes == 0 || raw::call(SYS_fstat, 1, raw::number(&got)) != 0 ||
        !S_ISREG(got.st_mode)) {
        return;
    }
    auto* buffer = static_cast<char*>(system::map_bytes(chosen->standard_output_bytes));
    if (buffer != nullptr) {
        setvbuf(stdout, buffer, _IOFBF, chosen->standard_output_bytes);
    }
}

std::size_t read_trace_event_limit() noexcept {
    std::uint64_t events = 0;
    const char* text = variable("SONDE_TRACE_EVENTS");
    return text != nullptr && settings::read_size(text, std::strlen(text), events) ? events : 65536;
}

void start_buffer() noexcept {
    chosen = read_settings();
    if (chosen == nullptr) {
        return;
    }
    for (std::size_t i = 0; i < chosen->count && variable("IOBUF_VERBOSE") != nullptr; ++i) {
        chosen->rules[i].is_brief = !chosen->rules[i].verbose;
        chosen->rules[i].verbose = true;
    }
    for (std::size_t i = 0; i < chosen->count; ++i) {
        if (chosen->rules[i].verbose) {
            open_report();
            break;
        }
    }
    if (__tsan_init != nullptr) {
        chosen->limits.threads = 0;  // ThreadSanitizer does not know our threads, and the program would not end
    }
    buffer::single_threaded = static_cast<const char*>(dlsym(RTLD_DEFAULT, "__libc_single_threaded"));
    buffer::start({.pread = pread_below, .pwrite = pwrite_below}, *chosen, report_descriptor,
                  variable("SONDE_IOBUF_LINES"));
    start_c_streams(*chosen);
    buffer_standard_output();
}

__attribute__((constructor)) void begin() {
    const int saved_errno = errno;
    own_memory();
    look_up_early();
    vfork_behind = dlsym(RTLD_NEXT, "vfork");
    // A program with more rights than its caller (setuid, file capabilities): the caller's variables name no files
    // here. With another libc than glibc (musl), nothing but passing on is certain.
    if (getauxval(AT_SECURE) != 0 || __register_atfork == nullptr || __cxa_at_quick_exit == nullptr) {
        errno = saved_errno;
        return;
    }
    if (const char* folder = variable("SONDE_TRACE")) {
        trace::start(folder, read_trace_event_limit());
    } else {
        start_buffer();
    }
    if (trace::is_tracing() || buffer::table != nullptr) {
        __register_atfork(
            prepare_fork, [] { after_fork(false); }, [] { after_fork(true); }, __dso_handle);
        // without it quick_exit() loses what a plain _exit() does not
        __cxa_at_quick_exit([](void*) { at_end(); }, __dso_handle);
    }
    errno = saved_errno;
}

/// Other libraries end after us and still write (unclosed units of a Fortran program): all calls stay usable, and what
/// comes now goes straight to the kernel.
__attribute__((destructor)) void finish() {
    at_end();
}

}  // namespace

void move_descriptor_off_number(int fd) noexcept {
    buffer::move_own_descriptor(fd);
}

void prepare_fork() noexcept {
    write_out_streams();
    if (buffer::table != nullptr) {
        buffer::prepare_fork_of_files();
    }
}

void after_fork(bool child) noexcept {
    if (child) {
        own_memory();
        buffer::close_report();  // else a child that lives on keeps the pipe of its parent's standard error open
        c_streams_after_fork();
    }
    if (buffer::table != nullptr) {
        buffer::resume_after_fork(child);
        buffer::shared_memory_after_fork(child);
    }
    if (child && trace::is_tracing()) {
        trace::restart_trace_in_child();
    }
}

void before_exec() noexcept {
    if (trace::is_tracing() && !in_borrowed_memory()) {
        trace::write_out();
    }
}

void at_end() noexcept {
    if (in_borrowed_memory()) {
        return;
    }
    const int saved_errno = errno;
    buffer::finish_buffering();
    if (buffer::table != nullptr) {
        buffer::report_at_end();
    }
    if (trace::is_tracing()) {
        trace::write_out();
    }
    errno = saved_errno;
}

void before_filter() noexcept {
    if (buffer::table != nullptr && !in_borrowed_memory()) {
        buffer::disable_buffering("the program limits its own system calls (seccomp)");
        buffer::stop_workers();
    }
}

void before_separation() noexcept {
    if (buffer::table != nullptr && !in_borrowed_memory()) {
        constexpr const char* why = "a thread of the program parts from the others";
        buffer::disable_buffering(why);
        buffer::stop_workers();
    }
}

void* real_vfork() noexcept {
    vforked.store(true, std::memory_order_relaxed);
    return vfork_behind;
}

}  // namespace sonde::intercept
