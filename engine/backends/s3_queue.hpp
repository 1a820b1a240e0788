// SPDX-License-Identifier: Apache-2.0
// Several requests of one task in flight: one connection for each slot of the queue.
#pragma once

#include "backends/backend.hpp"
#include "backends/s3_object.hpp"
#include "objects/exchange.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sonde::backends {

class S3Queue {
 public:
    /// Task `task` begins with endpoint task, and its slots use all endpoints in turn. Throws std::runtime_error.
    S3Queue(const objects::StoreSettings& settings, int task, int depth);
    ~S3Queue();
    S3Queue(const S3Queue&) = delete;
    S3Queue& operator=(const S3Queue&) = delete;

    /// `object` stays open until the operation has completed.
    bool submit(const IoRequest& operation, S3Object& object);
    std::size_t reap(std::span<Completion> done);
    std::uint64_t retries() const { return retries_; }
    const std::string& failure() const { return failure_; }

 private:
    struct Slot {
        std::unique_ptr<objects::Exchange> exchange;
        IoRequest operation;
        S3Object* object = nullptr;
        objects::StoreRequest request;
        std::string query;
        int retry_count = 0;
        std::int64_t retry_at_ns = 0;  ///< of a repetition that waits; 0 = none waits
    };

    void start_request(Slot& slot);
    void start_due_retries();
    /// True when the operation is done; `completion` is its result.
    bool finish_request(Slot& slot, int code, Completion& completion);
    int wait_ms() const;

    const objects::StoreSettings& settings_;
    const objects::CurlLibrary& curl_;
    void* multi_ = nullptr;
    std::vector<Slot> slots_;
    std::size_t in_flight_ = 0;
    std::uint64_t retries_ = 0;
    std::string failure_;
};

}  // namespace sonde::backends
