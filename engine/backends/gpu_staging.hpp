// SPDX-License-Identifier: Apache-2.0
// Storage and the memory of a GPU, with a pinned buffer of the host between them: what applications do that read into
// host memory and copy. Works with every backend that moves data to and from such a buffer.
#pragma once

#include "backends/backend.hpp"

namespace sonde::backends {

/// Passes all calls on to `channel`. A read is copied to the GPU when it has completed, a write from the GPU before it
/// begins; both copies belong to the operation. Throws std::runtime_error with one sentence.
std::unique_ptr<Channel> stage_in_gpu(std::unique_ptr<Channel> channel, const ChannelSetup& setup);

}  // namespace sonde::backends
