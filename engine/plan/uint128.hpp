// SPDX-License-Identifier: Apache-2.0
// 128-bit unsigned integer, so that bytes times nanoseconds cannot overflow.
#pragma once

#include <cstdint>

namespace sonde {

__extension__ using uint128 = unsigned __int128;  // GCC and Clang on every 64-bit target

}  // namespace sonde
