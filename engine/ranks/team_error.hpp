// SPDX-License-Identifier: Apache-2.0
// Errors of forming a team.
#pragma once

#include <stdexcept>

namespace sonde::ranks {

/// The launcher, the MPI library or a peer failed; what() is one sentence for the user. Exit code 3.
struct TeamError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// An error that every process detects with the same message, so that only one of them prints it.
struct CommonError : TeamError {
    using TeamError::TeamError;
};

}  // namespace sonde::ranks
