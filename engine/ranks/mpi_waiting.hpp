// SPDX-License-Identifier: Apache-2.0
// Shared by the sources of the MPI module: waiting without occupying a core, and error messages.
#pragma once

#include <mpi.h>

#ifdef SONDE_MPI_STANDARD_ABI
#ifndef MPI_ABI_VERSION
#error "this is not the header of the MPI standard ABI: compile with the wrapper mpicxx_abi (it defines MPI_ABI)"
#endif
#endif

#include <string>

namespace sonde::ranks::mpi {

/// Returns 0, or the negative errno closest to an MPI error, and stores the message for last_error_message().
int report_mpi_error(int code, const std::string& doing);
/// Returns -EOPNOTSUPP and stores the message for last_error_message().
int report_refusal(const std::string& why);
/// SondeMpiModule::set_wait_callback.
void set_wait_callback(int (*keep_waiting)(void*), void* context);
/// Completes a request by polling. `code` is the result of the call that created the request.
int wait_for_request(int code, MPI_Request& request, const std::string& doing, MPI_Status* status = MPI_STATUS_IGNORE);
const char* last_error_message();
/// Set when the library forbids concurrent calls from several threads: then only the main thread may open files.
extern bool one_thread_only;
/// Communicator of the members; null when all ranks are members.
extern MPI_Comm members;
/// Communicator of the ranks that open shared files together.
MPI_Comm member_group();

}  // namespace sonde::ranks::mpi
