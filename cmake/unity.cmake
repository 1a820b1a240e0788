# SPDX-License-Identifier: Apache-2.0
# What makes a whole build short. Most of the time of a file goes into the JSON library: into reading its header, making
# the same templates again and optimizing them.

# With SONDE_UNITY the files of one folder are compiled as one. Names in unnamed namespaces must then differ within a
# folder, and from names in its functions, which the compiler sees (-Wshadow).
function(sonde_unity target)
  if(NOT SONDE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC collects garbage from 128 MiB on, a tenth of its time in such long files. Later costs 140 MiB of memory.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE --param=ggc-min-expand=300 --param=ggc-min-heapsize=524288)
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    # Backends implement one interface with the same names, and have little to include. The main.cpp of tests, in no
    # folder, asks the header of the test library for its implementation, which must not have been read before.
    if(NOT folder STREQUAL "backends" AND NOT source STREQUAL "main.cpp")
      string(MAKE_C_IDENTIFIER "together_${folder}" group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  # Other parts of a class template, which they instantiate as the first does; and the templates of the JSON library.
  set_source_files_properties(workloads/moving.cpp workloads/plain_moves.cpp plan/json_io.cpp
    PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# With SONDE_UNITY headers of others are read once for all files of a target, where they are most of what its files read.
# GCC only: other compilers have not been measured. Not for releases, which are the same bytes everywhere.
function(sonde_precompile target)
  if(SONDE_COMPILED_TESTS AND target MATCHES "-tests$")
    return()
  endif()
  if(SONDE_UNITY AND NOT SONDE_PORTABLE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_source_files_properties(main.cpp core/main.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)  # see above
    if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")  # else it does not store what was compiled with such headers
      set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${CMAKE_CXX_COMPILER_LAUNCHER}")
    endif()
  endif()
endfunction()

# For code that runs once before or after what is measured: -O3 there buys nothing and costs a third of its build.
function(sonde_done_once target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# For programs of unit tests: their own code runs for moments, and optimizing what the macros of the test library become
# takes a third of their build. In the short form a check is one call; a throwing expression ends the test case.
function(sonde_unit_tests target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  target_compile_definitions(${target} PRIVATE DOCTEST_CONFIG_SUPER_FAST_ASSERTS)
endfunction()

# The sanitized tree compiles the tested code only. The compiled tests come from the tree SONDE_COMPILED_TESTS, which
# lists them here. A linker takes the first of the inline functions that several objects hold, so that the sanitized
# objects come before these.
function(sonde_select_tests list)
  if(SONDE_COMPILED_TESTS)
    list(FILTER ${list} INCLUDE REGEX "(^|/)main\\.cpp$")
    set(${list} ${${list}} PARENT_SCOPE)
  endif()
endfunction()
function(sonde_link_compiled_tests target)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_BINARY_DIR BASE_DIRECTORY "${PROJECT_BINARY_DIR}" OUTPUT_VARIABLE folder)
  set(index "${folder}/${target}.objects")
  if(NOT SONDE_COMPILED_TESTS)
    file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/${index}" CONTENT "$<JOIN:$<TARGET_OBJECTS:${target}>,\n>\n")
    return()
  endif()
  if(NOT EXISTS "${SONDE_COMPILED_TESTS}/${index}")
    message(FATAL_ERROR "${SONDE_COMPILED_TESTS} has no compiled tests of ${target}. Build sonde-tests there first.")
  endif()
  file(STRINGS "${SONDE_COMPILED_TESTS}/${index}" objects REGEX "\\.o$")
  list(FILTER objects EXCLUDE REGEX "/main\\.cpp\\.o$")
  target_link_libraries(${target} PRIVATE ${objects})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS "${objects}")
endfunction()
