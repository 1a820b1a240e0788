// SPDX-License-Identifier: Apache-2.0
// The path of a request from its client to the drives and back.
#pragma once

#include "model/client_table.hpp"
#include "model/file_table.hpp"
#include "model/network.hpp"
#include "model/storage_request.hpp"
#include "model/storage_servers.hpp"
#include "model/timeline.hpp"
#include "system/system_model.hpp"

#include <cstdint>
#include <vector>

namespace sonde::simulate {

/// Gets the requests that it has created, when they are complete.
class RequestOwner {
 public:
    RequestOwner() = default;
    RequestOwner(const RequestOwner&) = delete;
    RequestOwner& operator=(const RequestOwner&) = delete;
    virtual ~RequestOwner() = default;
    virtual void on_request_done(const StorageRequest& request) = 0;
};

class RequestPath {
 public:
    RequestPath(const SystemModel& site, ClientTable& clients, Network& network, StorageServers& storage,
                Timeline& timeline, RequestOwner& owner);

    StorageRequest& operator[](std::uint32_t request) noexcept { return requests_[request]; }
    std::uint32_t create(StreamId stream, const StripeLocation& location, FileId file, std::uint64_t offset,
                         std::uint64_t length, bool is_write, RequestPurpose purpose);
    /// Submits a request to its target, or queues it while its stream has the maximum in flight.
    void enqueue(std::uint32_t request);

    // Events.
    void transmit_over_next_link(std::uint32_t request);
    void receive_at_server(std::uint32_t request) { storage_.receive(requests_[request], request); }
    void submit_to_media(std::uint32_t request) { storage_.submit_to_media(requests_[request], request); }
    void complete_at_media(std::uint32_t request);
    void complete(std::uint32_t request);

 private:
    std::uint32_t stream_limit(const StorageRequest& request) const {
        return request.is_write ? site_.max_writes_in_flight : site_.max_reads_in_flight;
    }
    void submit_to_target(std::uint32_t request);
    void release_stream_slot(const StorageRequest& finished);
    void send(std::uint32_t request);

    const SystemModel& site_;
    ClientTable& clients_;
    Network& network_;
    StorageServers& storage_;
    Timeline& timeline_;
    RequestOwner& owner_;
    std::vector<StorageRequest> requests_;
    std::vector<std::uint32_t> free_requests_;
};

}  // namespace sonde::simulate
