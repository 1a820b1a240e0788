// SPDX-License-Identifier: Apache-2.0
#include "buffer/state.hpp"

namespace sonde::buffer {

constinit State state;

}  // namespace sonde::buffer
