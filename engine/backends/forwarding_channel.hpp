// SPDX-License-Identifier: Apache-2.0
// Base class of channels that wrap another channel.
#pragma once

#include "backends/backend.hpp"

#include <memory>
#include <utility>

namespace sonde::backends {

/// Forwards all calls to `inner_`, except syscall_file() and name_operations(), by which callers bypass the wrapper.
class ForwardingChannel : public Channel {
 public:
    explicit ForwardingChannel(std::unique_ptr<Channel> inner) : inner_(std::move(inner)) {}

    int open(std::uint16_t file, const OpenRequest& request) override { return inner_->open(file, request); }
    int fsync(std::uint16_t file) override { return inner_->fsync(file); }
    int close(std::uint16_t file) override { return inner_->close(file); }
    std::int64_t transfer(const IoRequest& operation) noexcept override { return inner_->transfer(operation); }
    bool submit(const IoRequest& operation) noexcept override { return inner_->submit(operation); }
    std::size_t reap(std::span<Completion> done) noexcept override { return inner_->reap(done); }
    int stat(Directory root, const char* path) noexcept override { return inner_->stat(root, path); }
    int remove(Directory root, const char* path) noexcept override { return inner_->remove(root, path); }
    bool agree_on_stop(bool stop) noexcept override { return inner_->agree_on_stop(stop); }
    std::int64_t virtual_time_ns() const noexcept override { return inner_->virtual_time_ns(); }
    void begin_timed_part() noexcept override { inner_->begin_timed_part(); }
    bool advance_virtual_time(std::int64_t ns) noexcept override { return inner_->advance_virtual_time(ns); }
    std::vector<std::string> missing_features() const override { return inner_->missing_features(); }
    std::uint64_t retries() const noexcept override { return inner_->retries(); }
    const char* last_error_text() const noexcept override { return inner_->last_error_text(); }

 protected:
    std::unique_ptr<Channel> inner_;
};

}  // namespace sonde::backends
