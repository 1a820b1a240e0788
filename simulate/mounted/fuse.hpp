// SPDX-License-Identifier: Apache-2.0
// libfuse 3 in the one version of its interface that we use.
#pragma once

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#include <fuse3/fuse_lowlevel.h>
