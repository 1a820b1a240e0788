// SPDX-License-Identifier: Apache-2.0
// The next function of the same name in line: libc's, or that of another preloaded library.
#pragma once

#include "intercept/calls.hpp"

namespace sonde::intercept {

enum class Name : unsigned {
#define SONDE_NAME(result, name, parameters) call_##name,
    SONDE_CALLS(SONDE_NAME)
#undef SONDE_NAME
        count
};

extern void* found[static_cast<unsigned>(Name::count)];
/// Looks the name up. For a call that no library behind us has: a function that fails with ENOSYS.
void* look_up(Name name) noexcept;
/// Those that must not be looked up late: in a signal handler, in the child of vfork, while a thread ends.
void look_up_ordinary() noexcept;

template <class Function>
inline Function* next(Name name, Function*) noexcept {
    void* known = found[static_cast<unsigned>(name)];
    return reinterpret_cast<Function*>(known != nullptr ? known : look_up(name));
}

}  // namespace sonde::intercept

// next(read)(fd, data, bytes)
#define NEXT(name) ::sonde::intercept::next(::sonde::intercept::Name::call_##name, &wrap_##name)
