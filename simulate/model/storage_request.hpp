// SPDX-License-Identifier: Apache-2.0
// One request of a client to one target.
#pragma once

#include "kernel/time.hpp"
#include "model/client_table.hpp"

#include <cstdint>

namespace sonde::simulate {

enum class RequestPurpose : std::uint8_t { call, write_behind, read_ahead };

struct StorageRequest {
    std::uint64_t file_offset = 0, object_offset = 0, length = 0;
    std::uint64_t read_ahead_bytes = 0;  ///< of the length: beyond the call that sent it
    Time last_byte_time = 0;             ///< when the last byte arrives where the first byte is now
    Time server_arrival = 0;             ///< of its last byte
    std::uint32_t client = 0, target = 0, file = 0, stream = 0, forwarder = 0;
    std::uint32_t call = no_index;                                     ///< of RequestPurpose::call
    std::int32_t hops[10] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};  ///< links, from the client on
    std::uint8_t hop = 0, hop_count = 0;
    bool is_write = false, was_retried = false;
    bool extends_file = false;  ///< a write beyond the allocated blocks, which passes the log
    RequestPurpose purpose = RequestPurpose::call;
    std::uint32_t next_waiting = no_index;  ///< the next request in the list of InFlightLimit
};

}  // namespace sonde::simulate
