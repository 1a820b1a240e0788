// SPDX-License-Identifier: Apache-2.0
#include "backends/gpu_staging.hpp"

#include "backends/forwarding_channel.hpp"
#include "backends/gpu_memory.hpp"

#include <cerrno>

namespace sonde::backends {
namespace {

class StagedChannel final : public ForwardingChannel {
 public:
    StagedChannel(std::unique_ptr<Channel> inner, const ChannelSetup& setup)
        : ForwardingChannel(std::move(inner)),
          memory_(setup),
          copies_(setup.gpu_copies),
          in_flight_(setup.buffer_areas.size()) {}
    ~StagedChannel() override { inner_.reset(); }  // before memory_, because the channel may still use the buffers

    int open(std::uint16_t file, const OpenRequest& request) override {
        return memory_.enter_thread() ? inner_->open(file, request) : -EIO;
    }
    void begin_timed_part() noexcept override {
        is_broken_ = !memory_.enter_thread() || (!copies_.before_writes && !memory_.upload_areas());
        inner_->begin_timed_part();
    }
    const char* last_error_text() const noexcept override {
        return *memory_.explanation() != '\0' ? memory_.explanation() : inner_->last_error_text();
    }
    std::vector<std::string> missing_features() const override {
        std::vector<std::string> all = inner_->missing_features();
        if (!memory_.is_pinned()) {
            all.emplace_back("Buffers of the host could not be pinned for the GPU, so copies are slower.");
        }
        return all;
    }

    std::int64_t transfer(const IoRequest& operation) noexcept override {
        const bool is_fetched = !operation.is_write || copy_from_gpu(operation);
        const std::int64_t moved =
            inner_->transfer(operation);  // in any case: other tasks may wait for a collective call
        if (!is_fetched) {
            return -EIO;
        }
        return operation.is_write || moved <= 0 || (begin_copy_to_gpu(operation, moved) && memory_.wait()) ? moved
                                                                                                           : -EIO;
    }

    bool submit(const IoRequest& operation) noexcept override {
        if (operation.is_write && !copy_from_gpu(operation)) {
            is_broken_ = true;  // reap() reports it: false would mean that the queue is full
        }
        in_flight_[operation.slot] = operation;
        return inner_->submit(operation);
    }
    std::size_t reap(std::span<Completion> done) noexcept override {
        const std::size_t count = inner_->reap(done);
        for (std::size_t i = 0; i < count; ++i) {
            const IoRequest& operation = in_flight_[done[i].slot];
            if (!operation.is_write && done[i].result > 0 && !begin_copy_to_gpu(operation, done[i].result)) {
                is_broken_ = true;
            }
        }
        if (!memory_.wait() || is_broken_) {
            is_broken_ = true;
            for (std::size_t i = 0; i < count; ++i) {
                done[i].result = -EIO;
            }
        }
        return count;
    }

 private:
    /// The bytes to write come from the GPU.
    bool copy_from_gpu(const IoRequest& operation) noexcept {
        return !is_broken_ &&
               (!copies_.before_writes || memory_.begin_upload(operation.slot, operation.buffer, operation.length)) &&
               memory_.begin_download(operation.slot, operation.buffer, operation.length) && memory_.wait();
    }
    bool begin_copy_to_gpu(const IoRequest& operation, std::int64_t bytes) noexcept {
        const auto count = static_cast<std::uint64_t>(bytes);
        return memory_.begin_upload(operation.slot, operation.buffer, count) &&
               (!copies_.after_reads || memory_.begin_download(operation.slot, operation.buffer, count));
    }

    GpuMemory memory_;
    GpuCopies copies_;
    std::vector<IoRequest> in_flight_;  ///< by slot
    bool is_broken_ = false;
};

}  // namespace

std::unique_ptr<Channel> stage_in_gpu(std::unique_ptr<Channel> channel, const ChannelSetup& setup) {
    return std::make_unique<StagedChannel>(std::move(channel), setup);
}

}  // namespace sonde::backends
