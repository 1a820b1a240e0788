# SPDX-License-Identifier: Apache-2.0
# Warnings for our own targets only; errors for developers.
function(sonde_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
    -Woverloaded-virtual -Wcast-align -Wnull-dereference -Wdouble-promotion $<$<BOOL:${SONDE_DEVELOPER}>:-Werror>)
endfunction()
