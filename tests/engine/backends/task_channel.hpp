// SPDX-License-Identifier: Apache-2.0
// A channel as a task has it: with its settings and one aligned buffer area for each queue slot.
#pragma once

#include "backends/backend.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sonde::tests {

class TaskChannel {
 public:
    TaskChannel(const backends::Backend& backend, plan::Io io, std::uint32_t length, unsigned files = 1)
        : io_(std::move(io)),
          memory_(static_cast<std::byte*>(std::aligned_alloc(4096, slots() * rounded(length))), std::free) {
        std::memset(memory_.get(), 0, slots() * rounded(length));
        for (std::size_t i = 0; i < slots(); ++i) {
            areas_.emplace_back(memory_.get() + i * rounded(length), rounded(length));
        }
        backends::ChannelSetup setup;
        setup.io = &io_;
        setup.file_count = files;
        setup.max_length = length;
        setup.buffer_areas = areas_;
        channel_ = backend.make_channel(setup);
    }

    backends::Channel* operator->() const { return channel_.get(); }
    std::span<std::byte> area(std::size_t slot = 0) const { return areas_[slot]; }
    void fill(char content, std::size_t slot = 0) const {
        std::memset(areas_[slot].data(), content, areas_[slot].size());
    }
    std::string text(std::size_t bytes, std::size_t slot = 0) const {
        return std::string(reinterpret_cast<const char*>(areas_[slot].data()), bytes);
    }

    backends::IoRequest operation(bool write, std::uint64_t offset, std::uint32_t length, std::uint32_t slot = 0,
                                  std::uint16_t file = 0) const {
        backends::IoRequest request;
        request.offset = offset;
        request.buffer = areas_[slot].data();
        request.length = length;
        request.file_index = file;
        request.is_write = write;
        request.slot = slot;
        return request;
    }
    std::int64_t write(std::uint64_t offset, std::uint32_t length) const {
        return channel_->transfer(operation(true, offset, length));
    }
    std::int64_t read(std::uint64_t offset, std::uint32_t length) const {
        return channel_->transfer(operation(false, offset, length));
    }

 private:
    std::size_t slots() const { return static_cast<std::size_t>(io_.queue_depth); }
    static std::size_t rounded(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

    plan::Io io_;
    std::unique_ptr<std::byte, decltype(&std::free)> memory_;
    std::vector<std::span<std::byte>> areas_;
    std::unique_ptr<backends::Channel> channel_;
};

inline backends::OpenRequest to_write(const std::string& path, std::uint64_t size = 0) {
    backends::OpenRequest request;
    request.path = path;
    request.write = true;
    request.create = true;
    request.size = size;
    return request;
}

inline backends::OpenRequest to_read(const std::string& path) {
    backends::OpenRequest request;
    request.path = path;
    return request;
}

}  // namespace sonde::tests
