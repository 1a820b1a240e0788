// SPDX-License-Identifier: Apache-2.0
#include "intercept/lifetime.hpp"

#include "intercept/c_streams.hpp"

#include "intercept/errors.hpp"
#include "system/high_descriptor.hpp"
#include "system/memory.hpp"
#include "system/oldest_libc.hpp"
#include "system/text.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <cstdlib>
#include <cstring>

extern "C" char** environ;
SONDE_OLDEST(dlsym);

namespace sonde::intercept {

namespace {

settings::Settings chosen;
int report_descriptor = -1;
void* vfork_behind = nullptr;

ssize_t pread_below(int fd, void* data, std::size_t bytes, off64_t offset) {
    return NEXT(pread64)(fd, data, bytes, offset);
}
ssize_t pwrite_below(int fd, const void* data, std::size_t bytes, off64_t offset) {
    return NEXT(pwrite64)(fd, data, bytes, offset);
}

/// The environment as it was given: a program may have replaced getenv, or not have started yet.
const char* variable(const char* name) noexcept {
    const std::size_t length = std::strlen(name);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=' && (*entry)[length + 1] != 0) {
            return *entry + length + 1;
        }
    }
    return nullptr;
}

void open_report() noexcept {
    const long duplicate = system::high_duplicate(static_cast<int>(2));
    report_descriptor = duplicate >= 0 ? static_cast<int>(duplicate) : -1;
}

void warn(const char* sentence) {
    system::Text text(report_descriptor >= 0 ? report_descriptor : 2);
    text << "sonde: " << sentence << '\n';
    text.flush();
}

void read_settings_file(const char* path) noexcept {
    const long fd = raw::call(SYS_openat, AT_FDCWD, raw::number(path), O_RDONLY | O_CLOEXEC);
    constexpr std::size_t most = 65536;
    auto* text = static_cast<char*>(system::map_bytes(most));
    long got = -1;
    std::size_t length = 0;
    while (fd >= 0 && text != nullptr && length < most - 1) {
        got = raw::call(SYS_read, fd, raw::number(text + length), static_cast<long>(most - 1 - length));
        if (got <= 0) {
            break;
        }
        length += static_cast<std::size_t>(got);
    }
    if (fd >= 0) {
        raw::call(SYS_close, fd);
    }
    if (fd < 0 || got < 0) {
        warn("the settings file named by SONDE_IOBUF_FILE cannot be read; nothing of it is used.");
        return;
    }
    settings::read_params(text, chosen, warn);
}

void buffer_standard_output() noexcept {
    struct stat got {};
    if (chosen.standard_output_bytes == 0 || raw::call(SYS_fstat, 1, raw::number(&got)) != 0 || !S_ISREG(got.st_mode)) {
        return;
    }
    auto* buffer = static_cast<char*>(system::map_bytes(chosen.standard_output_bytes));
    if (buffer != nullptr) {
        setvbuf(stdout, buffer, _IOFBF, chosen.standard_output_bytes);
    }
}

std::size_t events_wanted() noexcept {
    std::uint64_t events = 0;
    const char* text = variable("SONDE_TRACE_EVENTS");
    return text != nullptr && settings::read_size(text, std::strlen(text), events) ? events : 65536;
}

void start_buffer() noexcept {
    const char* params = variable("IOBUF_PARAMS");
    const char* file = variable("SONDE_IOBUF_FILE");
    if (params == nullptr && file == nullptr) {
        return;
    }
    if (params != nullptr) {
        settings::read_params(params, chosen, warn);
    }
    if (file != nullptr) {
        read_settings_file(file);
    }
    for (std::size_t i = 0; i < chosen.count && variable("IOBUF_VERBOSE") != nullptr; ++i) {
        chosen.rules[i].brief = !chosen.rules[i].verbose;
        chosen.rules[i].verbose = true;
    }
    for (std::size_t i = 0; i < chosen.count; ++i) {
        if (chosen.rules[i].verbose) {
            open_report();
            break;
        }
    }
    buffer::single_threaded = static_cast<const char*>(dlsym(RTLD_DEFAULT, "__libc_single_threaded"));
    buffer::start({.pread = pread_below, .pwrite = pwrite_below}, chosen, report_descriptor,
                  variable("SONDE_IOBUF_LINES"));
    start_c_streams(chosen);
    buffer_standard_output();
}

__attribute__((constructor)) void begin() {
    const int saved_errno = errno;
    own_memory();
    look_up_ordinary();
    vfork_behind = dlsym(RTLD_NEXT, "vfork");
    // A program with more rights than its caller (setuid, file capabilities): the caller's variables name no files
    // here.
    if (getauxval(AT_SECURE) != 0) {
        errno = saved_errno;
        return;
    }
    if (const char* folder = variable("SONDE_TRACE")) {
        trace::start(folder, events_wanted());
    } else {
        start_buffer();
    }
    if (trace::on() || buffer::table != nullptr) {
        pthread_atfork(
            prepare_fork, [] { after_fork(false); }, [] { after_fork(true); });
        static_cast<void>(at_quick_exit(at_end));  // without it quick_exit() loses what a plain _exit() does not
    }
    errno = saved_errno;
}

/// Other libraries end after us and still write (unclosed units of a Fortran program): all calls stay usable, and what
/// comes now goes straight to the kernel.
__attribute__((destructor)) void finish() {
    at_end();
}

}  // namespace

void give_number(int fd) noexcept {
    buffer::move_private(fd);
}

void prepare_fork() noexcept {
    write_out_streams();
    if (buffer::table != nullptr) {
        buffer::fork_prepare();
    }
}

void after_fork(bool child) noexcept {
    if (child) {
        own_memory();
        buffer::close_report();  // else a child that lives on keeps the pipe of its parent's standard error open
        c_streams_after_fork();
    }
    if (buffer::table != nullptr) {
        buffer::fork_done(child);
        buffer::shared_memory_after_fork(child);
    }
    if (child && trace::on()) {
        trace::forked_child();
    }
}

void before_exec() noexcept {
    if (trace::on() && !in_borrowed_memory()) {
        trace::write_out();
    }
}

void at_end() noexcept {
    if (in_borrowed_memory()) {
        return;
    }
    const int saved_errno = errno;
    buffer::finish();
    if (buffer::table != nullptr) {
        buffer::report_at_end();
    }
    if (trace::on()) {
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
