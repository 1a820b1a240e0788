# SPDX-License-Identifier: Apache-2.0
# Warnings for our own targets only; errors for developers. Users get none: they cost a twentieth of a build.
function(sonde_warnings target)
  if(NOT SONDE_WARNINGS)
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
    -Woverloaded-virtual -Wcast-align -Wnull-dereference -Wdouble-promotion $<$<BOOL:${SONDE_DEVELOPER}>:-Werror>)
  # GCC 12 sees overlaps in "text" + std::string at -O3 that are not there (GCC bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
endfunction()
