// SPDX-License-Identifier: Apache-2.0
// What the two halves of the MPI module share: waiting without burning a core, and errors in words.
#pragma once

#include <mpi.h>

#ifdef SONDE_MPI_STANDARD_ABI
#ifndef MPI_ABI_VERSION
#error "this is not the header of the MPI standard ABI: compile with the wrapper mpicxx_abi (it defines MPI_ABI)"
#endif
#endif

#include <string>

namespace sonde::ranks::mpi {

/// 0, or the negative errno that comes nearest to an MPI error; the sentence goes to last_error().
int failed(int code, const std::string& doing);
/// -EOPNOTSUPP; the sentence goes to last_error().
int refused(const std::string& why);
/// Completes a request by polling. Consumes `code`, the result of the call that began it.
int wait_for(int code, MPI_Request& request, const std::string& doing, MPI_Status* status = MPI_STATUS_IGNORE);
const char* last_error();
/// The library forbids calls from several threads at a time, so only the main thread may have files.
extern bool one_thread_only;
/// Who takes part, where not all ranks do; else null.
extern MPI_Comm members;
/// Who opens shared files together.
MPI_Comm member_group();

}  // namespace sonde::ranks::mpi
