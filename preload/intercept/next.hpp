// SPDX-License-Identifier: Apache-2.0
// Looks up the next function of the same name: that of libc or of another preloaded library.
#pragma once

#include "intercept/calls.hpp"

namespace sonde::intercept {

enum class FunctionId : unsigned {
#define SONDE_NAME(result, name, parameters) call_##name,
    SONDE_CALLS(SONDE_NAME)
#undef SONDE_NAME
        count
};

extern void* next_functions[static_cast<unsigned>(FunctionId::count)];
/// Looks the name up. For a call that no library behind us has: one that asks the kernel, or fails with ENOSYS.
void* look_up_next_function(FunctionId name) noexcept;
/// For functions of libraries that a program may load later, out of sight of everybody else (an MPI module, a package
/// of Python): also looks where the object of the `caller` would have found it.
void* look_up_next_function_of_caller(FunctionId name, const void* caller) noexcept;
/// Looks up a function that the library does not intercept; nullptr if there is none.
void* look_up_in_caller_libraries(const char* name, const void* caller) noexcept;
/// Looks up at start the functions that a program may first call where a lookup is not allowed: in a signal handler, in
/// the child of vfork, while a thread ends.
void look_up_functions_early() noexcept;

template <class Function>
inline Function* next_function(FunctionId name, Function*) noexcept {
    void* function = next_functions[static_cast<unsigned>(name)];
    return reinterpret_cast<Function*>(function != nullptr ? function : look_up_next_function(name));
}

template <class Function>
inline Function* next_function_of_caller(FunctionId name, const void* caller, Function*) noexcept {
    return reinterpret_cast<Function*>(look_up_next_function_of_caller(name, caller));
}

}  // namespace sonde::intercept

// In a wrapper itself, not in a function that it calls.
#define NEXT_OF_CALLER(name)                                                                 \
    ::sonde::intercept::next_function_of_caller(::sonde::intercept::FunctionId::call_##name, \
                                                __builtin_return_address(0), &wrap_##name)
// next(read)(fd, data, bytes)
#define NEXT(name) ::sonde::intercept::next_function(::sonde::intercept::FunctionId::call_##name, &wrap_##name)
