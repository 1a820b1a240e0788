// SPDX-License-Identifier: Apache-2.0
// An object that a channel of the S3 backend has open: a writer collects parts of a multipart upload, or puts the
// object with one request when one operation covers it.
#pragma once

#include "backends/backend.hpp"
#include "objects/client.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::backends {

class S3Object {
 public:
    /// Begins a multipart upload when the object needs several operations of `length` bytes. 0 or -errno.
    int open(objects::StoreClient& client, const OpenRequest& request, std::uint32_t length);
    /// Completes or aborts the upload. 0 or -errno; last_error_text() has the reason when the client has none.
    int close(objects::StoreClient& client);

    /// The request of one operation. `query` holds its text and lives as long as the request.
    objects::StoreRequest make_request(const IoRequest& operation, std::string& query) const;
    /// Notes that an operation has succeeded.
    void add_part(const IoRequest& operation, const std::string& entity_tag);
    const std::string& explanation() const { return explanation_; }

 private:
    std::uint64_t part_index(const IoRequest& operation) const { return operation.offset / length_; }

    std::string key_;
    std::string upload_;                    ///< id of the multipart upload; empty: none
    std::vector<std::string> entity_tags_;  ///< entity tag of each part; empty: not uploaded
    std::uint32_t length_ = 1;
    bool exclusive_ = false;
    std::string explanation_;
};

}  // namespace sonde::backends
