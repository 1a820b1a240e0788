# SPDX-License-Identifier: Apache-2.0
# Programs that need nothing but libc: for wheels and for the tarball with one engine. sonde-mount still needs libfuse.
add_link_options(-static-libgcc -static-libstdc++)
# Paths of the build machine stay out of the programs, so that a release is the same bytes everywhere.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
if(LIBURING_FOUND)
  find_library(SONDE_LIBURING_ARCHIVE NAMES liburing.a)
  if(NOT SONDE_LIBURING_ARCHIVE)
    message(FATAL_ERROR "SONDE_PORTABLE needs liburing.a (Debian: liburing-dev, Fedora: liburing-devel).")
  endif()
  set_property(TARGET PkgConfig::LIBURING PROPERTY INTERFACE_LINK_LIBRARIES "${SONDE_LIBURING_ARCHIVE}")
endif()
