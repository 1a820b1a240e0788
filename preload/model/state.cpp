// SPDX-License-Identifier: Apache-2.0
#include "model/state.hpp"

namespace sonde::buffer {

constinit BufferState state;

}  // namespace sonde::buffer
