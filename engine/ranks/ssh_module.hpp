// SPDX-License-Identifier: Apache-2.0
// The functions of an MPI module, without MPI, for processes that `sonde-engine ssh` started: messages go through the
// socket to the node command of this host. Functions of MPI-IO and of file formats are null.
#pragma once

#include "ranks/mpi_interface.hpp"

namespace sonde::ranks {

/// The descriptor of the socket to the node command, in the environment of a process.
inline constexpr const char* ssh_socket_variable = "SONDE_SSH_SOCKET";

const SondeMpiModule* ssh_module();

}  // namespace sonde::ranks
