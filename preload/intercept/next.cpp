// SPDX-License-Identifier: Apache-2.0
#include "intercept/next.hpp"

#include "system/oldest_libc.hpp"
#include "system/raw.hpp"

#include <dlfcn.h>
#include <cerrno>
#include <cstddef>

SONDE_OLDEST(dlsym);
SONDE_OLDEST(dladdr);
SONDE_OLDEST(dlopen);
SONDE_OLDEST(dlclose);

namespace sonde::intercept {

namespace {

constexpr const char* names[] = {
#define SONDE_NAME(result, name, parameters) #name,
    SONDE_CALLS(SONDE_NAME)
#undef SONDE_NAME
};

long fail_with_enosys() {
    errno = ENOSYS;
    return -1;
}

long convert_raw_result(long result) noexcept {
    if (result < 0) {
        errno = static_cast<int>(-result);
        return -1;
    }
    return result;
}

// Programs call these by syscall() if libc has no function for them yet.
int openat2_of_kernel(int dirfd, const char* path, const void* how, std::size_t bytes) {
    return static_cast<int>(convert_raw_result(raw::call(SYS_openat2, dirfd, raw::pointer_to_number(path),
                                                         raw::pointer_to_number(how), static_cast<long>(bytes))));
}

int close_range_of_kernel(unsigned first, unsigned last, int flags) {
    return static_cast<int>(convert_raw_result(raw::call(SYS_close_range, first, last, flags)));
}

/// For a call that no library behind us has.
void* choose_fallback_function(FunctionId name) noexcept {
    switch (name) {
        case FunctionId::call_openat2:
            return reinterpret_cast<void*>(&openat2_of_kernel);
        case FunctionId::call_close_range:
            return reinterpret_cast<void*>(&close_range_of_kernel);
        default:
            return reinterpret_cast<void*>(&fail_with_enosys);
    }
}

}  // namespace

constinit void* next_functions[static_cast<unsigned>(FunctionId::count)] = {};

void* look_up_next_function(FunctionId name) noexcept {
    const int saved_errno = errno;
    void* function = dlsym(RTLD_NEXT, names[static_cast<unsigned>(name)]);
    errno = saved_errno;
    if (function == nullptr) {
        return choose_fallback_function(name);  // not kept: a library that is loaded later may bring it
    }
    __atomic_store_n(&next_functions[static_cast<unsigned>(name)], function, __ATOMIC_RELAXED);
    return function;
}

void* look_up_in_caller_libraries(const char* name, const void* caller) noexcept {
    const int saved_errno = errno;
    void* function = dlsym(RTLD_NEXT, name);
    Dl_info object{};
    if (function == nullptr && dladdr(caller, &object) != 0) {
        if (void* handle = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
            function = dlsym(handle, name);  // the object and what it was linked with
            dlclose(handle);
        }
    }
    errno = saved_errno;
    return function;
}

void* look_up_next_function_of_caller(FunctionId name, const void* caller) noexcept {
    void* const function = look_up_in_caller_libraries(names[static_cast<unsigned>(name)], caller);
    return function != nullptr ? function : reinterpret_cast<void*>(&fail_with_enosys);
}

void look_up_functions_early() noexcept {
    constexpr FunctionId requested[] = {
        FunctionId::call_open,        FunctionId::call_open64,  FunctionId::call_openat,  FunctionId::call_close,
        FunctionId::call_read,        FunctionId::call_pread64, FunctionId::call_write,   FunctionId::call_pwrite64,
        FunctionId::call_lseek64,     FunctionId::call_dup2,    FunctionId::call_fcntl64, FunctionId::call_execve,
        FunctionId::call__exit,       FunctionId::call_abort,   FunctionId::call_syscall, FunctionId::call_dup3,
        FunctionId::call_close_range, FunctionId::call_fsync,   FunctionId::call_fstat64, FunctionId::call_lseek};
    for (const FunctionId name : requested) {
        if (next_functions[static_cast<unsigned>(name)] == nullptr) {
            look_up_next_function(name);
        }
    }
}

}  // namespace sonde::intercept
