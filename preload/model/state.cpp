// SPDX-License-Identifier: Apache-2.0
#include "model/state.hpp"

namespace sonde::buffer {

constinit State state;

}  // namespace sonde::buffer
