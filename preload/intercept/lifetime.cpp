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

settings::Settings* library_settings = nullptr;
int report_descriptor = -1;
void* next_vfork = nullptr;

ssize_t real_pread(int fd, void* data, std::size_t bytes, off64_t offset) {
    return NEXT(pread64)(fd, data, bytes, offset);
}
ssize_t real_pwrite(int fd, const void* data, std::size_t bytes, off64_t offset) {
    return NEXT(pwrite64)(fd, data, bytes, offset);
}

void open_report() noexcept {
    const long duplicate = system::duplicate_to_high_descriptor(static_cast<int>(2));
    report_descriptor = duplicate >= 0 ? static_cast<int>(duplicate) : -1;
}

void buffer_standard_output() noexcept {
    struct stat status {};
    if (library_settings->standard_output_bytes == 0 || raw::call(SYS_fstat, 1, raw::pointer_to_number(&status)) != 0 ||
        !S_ISREG(status.st_mode)) {
        return;
    }
    auto* buffer = static_cast<char*>(system::map_bytes(library_settings->standard_output_bytes));
    if (buffer != nullptr) {
        setvbuf(stdout, buffer, _IOFBF, library_settings->standard_output_bytes);
    }
}

std::size_t read_trace_event_limit() noexcept {
    std::uint64_t events = 0;
    const char* text = get_initial_variable("SONDE_TRACE_EVENTS");
    return text != nullptr && settings::read_size(text, std::strlen(text), events) ? events : 65536;
}

void start_buffer() noexcept {
    library_settings = read_settings();
    if (library_settings == nullptr) {
        return;
    }
    for (std::size_t i = 0; i < library_settings->rule_count && get_initial_variable("IOBUF_VERBOSE") != nullptr; ++i) {
        library_settings->rules[i].is_brief = !library_settings->rules[i].verbose;
        library_settings->rules[i].verbose = true;
    }
    for (std::size_t i = 0; i < library_settings->rule_count; ++i) {
        if (library_settings->rules[i].verbose) {
            open_report();
            break;
        }
    }
    if (__tsan_init != nullptr) {
        library_settings->limits.threads =
            0;  // ThreadSanitizer does not know our threads, and the program would not end
    }
    buffer::single_threaded = static_cast<const char*>(dlsym(RTLD_DEFAULT, "__libc_single_threaded"));
    buffer::start_buffering({.pread = real_pread, .pwrite = real_pwrite}, *library_settings, report_descriptor,
                            copy_initial_variable("SONDE_IOBUF_LINES"));
    start_c_streams(*library_settings);
    buffer_standard_output();
}

__attribute__((constructor)) void initialize_library() {
    const int saved_errno = errno;
    record_memory_owner();
    look_up_functions_early();
    next_vfork = dlsym(RTLD_NEXT, "vfork");
    // A program with more rights than its caller (setuid, file capabilities): the caller's variables name no files
    // here. With another libc than glibc (musl), nothing but passing on is certain.
    if (getauxval(AT_SECURE) != 0 || __register_atfork == nullptr || __cxa_at_quick_exit == nullptr) {
        errno = saved_errno;
        return;
    }
    if (const char* folder = copy_initial_variable("SONDE_TRACE")) {
        trace::start_tracing(folder, read_trace_event_limit());
    } else {
        start_buffer();
    }
    if (trace::is_tracing() || buffer::table != nullptr) {
        __register_atfork(
            prepare_fork, [] { finish_fork(false); }, [] { finish_fork(true); }, __dso_handle);
        // without it quick_exit() loses what a plain _exit() does not
        __cxa_at_quick_exit([](void*) { flush_at_process_end(); }, __dso_handle);
    }
    errno = saved_errno;
}

/// Other libraries end after us and still write (unclosed units of a Fortran program): all calls stay usable, and what
/// comes now bypasses the library.
__attribute__((destructor)) void finalize_library() {
    flush_at_process_end();
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

void finish_fork(bool child) noexcept {
    if (child) {
        record_memory_owner();
        buffer::close_report();  // else a child that lives on keeps the pipe of its parent's standard error open
        reset_c_streams_after_fork();
    }
    if (buffer::table != nullptr) {
        buffer::resume_after_fork(child);
        buffer::check_shared_memory_after_fork(child);
    }
    if (child && trace::is_tracing()) {
        trace::restart_trace_in_child();
    }
}

void flush_before_exec() noexcept {
    if (trace::is_tracing() && !is_in_vfork_child()) {
        trace::write_trace();
    }
}

void flush_at_process_end() noexcept {
    if (is_in_vfork_child()) {
        return;
    }
    const int saved_errno = errno;
    buffer::finish_buffering();
    if (buffer::table != nullptr) {
        buffer::report_at_end();
    }
    if (trace::is_tracing()) {
        trace::write_trace();
    }
    errno = saved_errno;
}

void disable_before_syscall_filter() noexcept {
    if (buffer::table != nullptr && !is_in_vfork_child()) {
        buffer::disable_buffering("the program limits its own system calls (seccomp)");
        buffer::stop_workers();
    }
}

void disable_before_namespace_change() noexcept {
    if (buffer::table != nullptr && !is_in_vfork_child()) {
        constexpr const char* why = "a thread of the program parts from the others";
        buffer::disable_buffering(why);
        buffer::stop_workers();
    }
}

void* real_vfork() noexcept {
    vforked.store(true, std::memory_order_relaxed);
    return next_vfork;
}

}  // namespace sonde::intercept
