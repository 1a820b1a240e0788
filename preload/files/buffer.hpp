// SPDX-License-Identifier: Apache-2.0
// The interface of the buffer for the intercepted calls, and for tests that use it without preloading.
#pragma once

#include "files/calls.hpp"
#include "files/candidates.hpp"
#include "files/descriptors.hpp"
#include "files/direct_descriptors.hpp"
#include "files/file_events.hpp"
#include "files/own_descriptors.hpp"
#include "files/passthrough.hpp"
#include "files/processes.hpp"
#include "files/report.hpp"
#include "files/shared_memory.hpp"
#include "files/start.hpp"
#include "files/syncing.hpp"
#include "guards/leases.hpp"
#include "model/table.hpp"
#include "modes/mpi_sharing.hpp"
#include "workers/pool.hpp"
