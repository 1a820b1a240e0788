# SPDX-License-Identifier: Apache-2.0
# Libraries of the engine. What the system has is used; what it lacks is fetched at one fixed commit. Without the
# library and without internet the configure step ends with the name of the package to install.
include(FetchContent)
option(SONDE_FETCH "Download header libraries that the system lacks" ON)
option(SONDE_MOUNT "sonde-mount, where libfuse is found" ON)

# Finds `package`, or makes it available from `url` at `commit`. `debian` and `fedora` name it for the package managers.
# A macro, not a function: find_package sets variables in the scope of its caller.
macro(sonde_dependency package version target url commit release debian fedora)
  find_package(${package} ${version} QUIET)
  if(TARGET ${target})
    message(STATUS "${package} ${${package}_VERSION}: found on this system")
  elseif(SONDE_FETCH)
    find_package(Git QUIET)
    if(NOT GIT_FOUND)
      message(FATAL_ERROR "${package} is not installed and cannot be downloaded without git. "
        "Install ${debian} (Debian, Ubuntu) or ${fedora} (Fedora, EPEL), or git.")
    endif()
    message(STATUS "${package}: not on this system; downloading release ${release} (commit ${commit}) from ${url}. "
      "If this fails, install ${debian} (Debian, Ubuntu) or ${fedora} (Fedora, EPEL).")
    FetchContent_Declare(${package} SYSTEM GIT_REPOSITORY ${url} GIT_TAG ${commit})
    FetchContent_MakeAvailable(${package})
  else()
    message(FATAL_ERROR "${package} is not installed and SONDE_FETCH is OFF. "
      "Install ${debian} (Debian, Ubuntu) or ${fedora} (Fedora, EPEL).")
  endif()
endmacro()

find_package(Threads REQUIRED)
set(JSON_BuildTests OFF CACHE INTERNAL "")
set(JSON_Install OFF CACHE INTERNAL "")
sonde_dependency(nlohmann_json 3.10 nlohmann_json::nlohmann_json https://github.com/nlohmann/json.git
  9cca280a4d0ccf0c08f47a99aa71d1b0e52f8d03 3.11.3 nlohmann-json3-dev json-devel)
set(CLI11_INSTALL OFF CACHE INTERNAL "")
sonde_dependency(CLI11 2.1 CLI11::CLI11 https://github.com/CLIUtils/CLI11.git
  4160d259d961cd393fd8d67590a8c7d210207348 2.5.0 libcli11-dev cli11-devel)
if(SONDE_DEVELOPER OR SONDE_TESTS)
  set(DOCTEST_WITH_TESTS OFF CACHE INTERNAL "")
  set(DOCTEST_WITH_MAIN_IN_STATIC_LIB OFF CACHE INTERNAL "")
  set(DOCTEST_NO_INSTALL ON CACHE INTERNAL "")
  sonde_dependency(doctest 2.4 doctest::doctest https://github.com/doctest/doctest.git
    1da23a3e8119ec5cce4f9388e91b065e20bf06f5 2.4.12 doctest-dev doctest-devel)
endif()

# liburing is a C library with its own build: from the system only. Without it a stub says why io_uring is absent.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(LIBURING QUIET IMPORTED_TARGET liburing>=2.2)
  pkg_check_modules(FUSE3 QUIET IMPORTED_TARGET fuse3>=3.12)
endif()
if(NOT SONDE_MOUNT)
  set(FUSE3_FOUND FALSE)
endif()
if(LIBURING_FOUND)
  message(STATUS "liburing ${LIBURING_VERSION}: found on this system")
else()
  message(STATUS "liburing 2.2 or later (Debian: liburing-dev, Fedora: liburing-devel; and pkg-config) not found: "
    "the io_uring backend is left out")
endif()
# So is libfuse.
if(FUSE3_FOUND)
  message(STATUS "libfuse ${FUSE3_VERSION}: found on this system")
elseif(NOT SONDE_MOUNT)
  message(STATUS "SONDE_MOUNT is OFF: sonde mount is left out")
else()
  message(STATUS "libfuse 3.12 or later (Debian: libfuse3-dev fuse3, Fedora: fuse3-devel fuse3; and pkg-config) not "
    "found: sonde mount is left out")
endif()
