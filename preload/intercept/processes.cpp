// SPDX-License-Identifier: Apache-2.0
// Processes that begin and end. A child that shares a descriptor shares its offset, and a process that ends takes with
// it what was not handed over: in both cases the kernel gets everything first.
#include "intercept/errors.hpp"
#include "intercept/lifetime.hpp"
#include "system/memory.hpp"

#include <sched.h>
#include <cstdarg>
#include <cstdlib>

namespace {

using namespace sonde;
using buffer::ChildKind;

/// posix_spawn: without file actions the child has only what is not close-on-exec.
template <class Real>
int spawn_child(Actions actions, Real real) {
    buffer::prepare_child_process(actions == nullptr ? ChildKind::Program : ChildKind::Copy);
    return real();
}

/// exec replaces the process image when it succeeds. When it fails the program continues as before.
template <class Real>
int replace_program(Real real) {
    buffer::prepare_child_process(ChildKind::Vanishing);
    intercept::flush_before_exec();
    return real();
}

template <class Real>
[[noreturn]] void end_process(Real real) {
    intercept::flush_at_process_end();
    real();
    __builtin_unreachable();
}

constexpr std::size_t max_arguments = 1U << 16U;

/// Converts the arguments of execl(), execlp() and execle() to an array, and finds the environment of execle().
struct ArgumentList {
    char** list = nullptr;
    std::size_t bytes = 0;
    char** environment = nullptr;

    ArgumentList(const char* first, va_list variable_arguments, bool with_environment) noexcept {
        va_list counted;
        va_copy(counted, variable_arguments);
        std::size_t count = 1;
        for (const char* argument = first; argument != nullptr && count < max_arguments;
             argument = va_arg(counted, const char*)) {
            ++count;
        }
        va_end(counted);
        bytes = count * sizeof(char*);
        list = static_cast<char**>(allocate_from_system(bytes));
        std::size_t index = 0;
        const char* argument = first;
        for (; list != nullptr && index + 1 < count; ++index) {
            list[index] = const_cast<char*>(argument);
            argument = va_arg(variable_arguments, const char*);
        }
        environment = with_environment && list != nullptr ? va_arg(variable_arguments, char**) : nullptr;
    }
    static void* allocate_from_system(std::size_t bytes) noexcept;
    ~ArgumentList();
    ArgumentList(const ArgumentList&) = delete;
    ArgumentList& operator=(const ArgumentList&) = delete;
};

void* ArgumentList::allocate_from_system(std::size_t bytes) noexcept {
    return sonde::system::map_bytes(bytes);
}

ArgumentList::~ArgumentList() {
    if (list != nullptr) {
        sonde::system::unmap_bytes(static_cast<void*>(list), bytes);
    }
}

int fail_with_enomem() noexcept {
    errno = ENOMEM;
    return -1;
}

}  // namespace

// fork() runs the handlers of pthread_atfork, which do all there is to do (lifetime.cpp); _Fork() does not.
pid_t wrap_fork(void) {
    return NEXT(fork)();
}
pid_t wrap___fork(void) {
    return NEXT(__fork)();
}
pid_t wrap__Fork(void) {
    intercept::prepare_fork();
    const pid_t pid = NEXT(_Fork)();
    intercept::finish_fork(pid == 0);
    return pid;
}

int wrap_clone(int (*run)(void*), void* stack, int flags, void* argument, void* a, void* b, void* c) {
    if ((flags & CLONE_THREAD) == 0) {
        buffer::prepare_child_process(ChildKind::Copy);
    }
    return NEXT(clone)(run, stack, flags, argument, a, b, c);
}

int wrap___clone(int (*run)(void*), void* stack, int flags, void* argument, void* a, void* b, void* c) {
    if ((flags & CLONE_THREAD) == 0) {
        buffer::prepare_child_process(ChildKind::Copy);
    }
    return NEXT(__clone)(run, stack, flags, argument, a, b, c);
}

extern "C" __attribute__((visibility("hidden"))) void* sonde_before_vfork() noexcept {
    buffer::prepare_child_process(ChildKind::Copy);
    return intercept::real_vfork();
}

// vfork returns twice from one frame: nothing of ours may lie between the program and the real one. So: prepare, put
// the stack back as it was, and jump.
#if defined(__x86_64__)
asm(".text\n.globl vfork\n.type vfork,@function\nvfork:\n"
    "  endbr64\n  subq $8, %rsp\n  call sonde_before_vfork@PLT\n  addq $8, %rsp\n  jmp *%rax\n.size vfork,.-vfork\n"
    ".globl __vfork\n.type __vfork,@function\n.set __vfork, vfork\n");
#elif defined(__aarch64__)
asm(".text\n.globl vfork\n.type vfork,%function\nvfork:\n"
    "  hint 34\n  stp x29, x30, [sp, #-16]!\n  bl sonde_before_vfork\n  ldp x29, x30, [sp], #16\n  br x0\n.size "
    "vfork,.-vfork\n"
    ".globl __vfork\n.type __vfork,%function\n.set __vfork, vfork\n");
#endif

int wrap_posix_spawn(pid_t* pid, Path path, Actions actions, Attributes attributes, Arguments arguments,
                     Arguments environment) {
    return spawn_child(actions,
                       [=] { return NEXT(posix_spawn)(pid, path, actions, attributes, arguments, environment); });
}
int wrap_posix_spawnp(pid_t* pid, Path path, Actions actions, Attributes attributes, Arguments arguments,
                      Arguments environment) {
    return spawn_child(actions,
                       [=] { return NEXT(posix_spawnp)(pid, path, actions, attributes, arguments, environment); });
}
int wrap_pidfd_spawn(int* pid, Path path, Actions actions, Attributes attributes, Arguments arguments,
                     Arguments environment) {
    return spawn_child(actions,
                       [=] { return NEXT(pidfd_spawn)(pid, path, actions, attributes, arguments, environment); });
}
int wrap_pidfd_spawnp(int* pid, Path path, Actions actions, Attributes attributes, Arguments arguments,
                      Arguments environment) {
    return spawn_child(actions,
                       [=] { return NEXT(pidfd_spawnp)(pid, path, actions, attributes, arguments, environment); });
}
int wrap_system(const char* command) {
    buffer::prepare_child_process(ChildKind::Program);
    return NEXT(system)(command);
}
FILE* wrap_popen(const char* command, const char* mode) {
    buffer::prepare_child_process(ChildKind::Program);
    return NEXT(popen)(command, mode);
}

int wrap_execve(Path path, Arguments arguments, Arguments environment) {
    return replace_program([=] { return NEXT(execve)(path, arguments, environment); });
}
int wrap_execv(Path path, Arguments arguments) {
    return replace_program([=] { return NEXT(execv)(path, arguments); });
}
int wrap_execvp(Path path, Arguments arguments) {
    return replace_program([=] { return NEXT(execvp)(path, arguments); });
}
int wrap_execvpe(Path path, Arguments arguments, Arguments environment) {
    return replace_program([=] { return NEXT(execvpe)(path, arguments, environment); });
}
int wrap_execveat(int dirfd, Path path, Arguments arguments, Arguments environment, int flags) {
    return replace_program([=] { return NEXT(execveat)(dirfd, path, arguments, environment, flags); });
}
int wrap_fexecve(int fd, Arguments arguments, Arguments environment) {
    return replace_program([=] { return NEXT(fexecve)(fd, arguments, environment); });
}
int wrap_execl(Path path, const char* first, ...) {
    va_list variable_arguments;
    va_start(variable_arguments, first);
    const ArgumentList arguments(first, variable_arguments, false);
    va_end(variable_arguments);
    return arguments.list == nullptr ? fail_with_enomem() : wrap_execv(path, arguments.list);
}
int wrap_execlp(Path path, const char* first, ...) {
    va_list variable_arguments;
    va_start(variable_arguments, first);
    const ArgumentList arguments(first, variable_arguments, false);
    va_end(variable_arguments);
    return arguments.list == nullptr ? fail_with_enomem() : wrap_execvp(path, arguments.list);
}
int wrap_execle(Path path, const char* first, ...) {
    va_list variable_arguments;
    va_start(variable_arguments, first);
    const ArgumentList arguments(first, variable_arguments, true);
    va_end(variable_arguments);
    return arguments.list == nullptr ? fail_with_enomem() : wrap_execve(path, arguments.list, arguments.environment);
}

void wrap__exit(int status) {
    end_process([=] { NEXT(_exit)(status); });
}
void wrap__Exit(int status) {
    end_process([=] { NEXT(_Exit)(status); });
}
void wrap_quick_exit(int status) {
    NEXT(quick_exit)(status);  // its handlers may still write; it ends in _exit inside libc
    __builtin_unreachable();
}
void wrap_abort(void) {
    end_process([] { NEXT(abort)(); });
}

/// Ends the threads of the library with the main thread, because the process lives until its last thread ends.
void wrap_pthread_exit(void* result) {
    if (raw::call(SYS_gettid) == raw::call(SYS_getpid)) {
        intercept::disable_before_namespace_change();
    }
    NEXT(pthread_exit)(result);
    __builtin_unreachable();
}
