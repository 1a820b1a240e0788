// SPDX-License-Identifier: Apache-2.0
// Functions of libc are taken in the version that every glibc since 2.28 has, so that a library built on a new machine
// loads on an old one. What glibc 2.34 moved from libdl and libpthread into libc is still there under its old version;
// before, it is found in those two libraries, which is why the build names them (CMakeLists.txt).
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SONDE_OLDEST(name) static_assert(true)  // a sanitizer stands in front of the newest version only
#elif defined(__x86_64__)
#define SONDE_OLDEST(name) asm(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__aarch64__)
#define SONDE_OLDEST(name) asm(".symver " #name "," #name "@GLIBC_2.17")
#endif
