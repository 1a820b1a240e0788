// SPDX-License-Identifier: Apache-2.0
// The buffer as its users see it: the intercepted calls, and the tests, which use it without preloading anything.
#pragma once

#include "buffer/around.hpp"
#include "buffer/calls.hpp"
#include "buffer/descriptors.hpp"
#include "buffer/direct.hpp"
#include "buffer/processes.hpp"
#include "buffer/report.hpp"
#include "buffer/shared_memory.hpp"
#include "buffer/sharing.hpp"
#include "buffer/start.hpp"
#include "buffer/syncing.hpp"
#include "buffer/table.hpp"
#include "buffer/workers.hpp"
