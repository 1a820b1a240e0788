// SPDX-License-Identifier: Apache-2.0
// A file's content in memory, as a task makes it.
#pragma once

#include "payload/payload.hpp"

#include <cstdlib>
#include <memory>
#include <vector>

namespace sonde::tests {

class Content {
 public:
    explicit Content(const plan::Payload& settings, std::uint64_t max_length = 1U << 20U,
                     std::uint64_t period = 256U << 10U)
        : base_(settings, period),
          memory_(
              static_cast<std::byte*>(std::aligned_alloc(4096, payload::PayloadImage::memory_for(period, max_length))),
              std::free),
          image_(base_, memory_.get(), max_length) {}

    /// Bytes of a file from `offset`, written by (file, generation), made in calls of `step` bytes.
    std::vector<std::byte> bytes(std::uint64_t file, std::uint64_t generation, std::uint64_t offset,
                                 std::uint64_t length, std::uint64_t step = 0) {
        image_.set_origin({file, generation});
        std::vector<std::byte> out;
        step = step == 0 ? length : step;
        for (std::uint64_t position = offset; position < offset + length; position += step) {
            const std::uint64_t part = std::min(step, offset + length - position);
            const std::byte* bytes = image_.content_at(position, part);
            out.insert(out.end(), bytes, bytes + part);
        }
        return out;
    }
    payload::PayloadImage& image() { return image_; }

 private:
    payload::PayloadBase base_;
    std::unique_ptr<std::byte, decltype(&std::free)> memory_;
    payload::PayloadImage image_;
};

}  // namespace sonde::tests
