# SPDX-License-Identifier: Apache-2.0
# Toolchain of releases (tools/cross_compiler.py): a compiler for one machine and one glibc, and libraries of that
# machine below one folder. Environment variables, because CMake reads this file again in each of its trials.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "$ENV{SONDE_RELEASE_MACHINE}")
set(CMAKE_CXX_COMPILER "$ENV{SONDE_RELEASE_COMPILER}")
set(CMAKE_LIBRARY_ARCHITECTURE "$ENV{SONDE_RELEASE_MACHINE}-linux-gnu")
set(CMAKE_FIND_ROOT_PATH "$ENV{SONDE_RELEASE_LIBRARIES}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
# zig compiles its C++ library once for each set of these: with the same ones in CMake's trials it does so once. -s:
# symbols would be most of each program.
set(CMAKE_CXX_FLAGS_INIT "-O2 -s")
# Helpers of the compiler (division of 128-bit numbers) come from libgcc. zig's own library of helpers also has memcpy
# and exp: one helper taken from it replaces glibc's faster memcpy, and another exp changes results of the model.
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "$ENV{SONDE_RELEASE_LIBGCC}")
endforeach()
# libfuse of the distribution needs its newer glibc; that of the user's system fits the glibc there.
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,--allow-shlib-undefined")
