// SPDX-License-Identifier: Apache-2.0
#include "backends/s3_queue.hpp"

#include "meters/clock.hpp"
#include "objects/client.hpp"

#include <algorithm>
#include <stdexcept>

namespace sonde::backends {

S3Queue::S3Queue(const objects::StoreSettings& settings, int task, int depth)
    : settings_(settings),
      curl_(objects::load_curl()),
      multi_(curl_.multi_init()),
      slots_(static_cast<std::size_t>(depth)) {
    if (multi_ == nullptr) {
        throw std::runtime_error("libcurl has no memory for a queue of requests");
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        slots_[i].exchange = std::make_unique<objects::Exchange>(settings, static_cast<std::size_t>(task) + i);
        slots_[i].exchange->set_user_data(&slots_[i]);
    }
}

S3Queue::~S3Queue() {
    for (const Slot& slot : slots_) {
        curl_.multi_remove_handle(multi_, slot.exchange->curl_handle());  // harmless for a handle that is not in it
    }
    curl_.multi_cleanup(multi_);
}

bool S3Queue::submit(const IoRequest& operation, S3Object& object) {
    if (operation.slot >= slots_.size()) {
        return false;
    }
    Slot& slot = slots_[operation.slot];
    slot.operation = operation;
    slot.object = &object;
    slot.retry_count = 0;
    slot.request = object.make_request(operation, slot.query);
    start_request(slot);
    ++in_flight_;
    return true;
}

void S3Queue::start_request(Slot& slot) {
    slot.retry_at_ns = 0;
    slot.exchange->prepare(slot.request);
    curl_.multi_add_handle(multi_, slot.exchange->curl_handle());
}

void S3Queue::start_due_retries() {
    const std::int64_t now = meters::Clock::monotonic_ns();
    for (Slot& slot : slots_) {
        if (slot.retry_at_ns != 0 && slot.retry_at_ns <= now) {
            start_request(slot);
        }
    }
}

bool S3Queue::finish_request(Slot& slot, int code, Completion& completion) {
    const objects::RequestResult ending = slot.exchange->evaluate_response(code);
    if (ending.value < 0 && ending.is_temporary && slot.retry_count < settings_.retries) {
        ++retries_;
        slot.retry_at_ns = meters::Clock::monotonic_ns() + objects::backoff_ms(++slot.retry_count) * 1'000'000LL;
        return false;
    }
    if (ending.value < 0) {
        failure_ = objects::describe_failure(slot.exchange->failure(), slot.retry_count);
    } else {
        slot.object->add_part(slot.operation, slot.exchange->entity_tag());
    }
    completion = {slot.operation.slot, ending.value};
    return true;
}

/// Until a repetition is due, at most a second.
int S3Queue::wait_ms() const {
    std::int64_t next = 0;
    for (const Slot& slot : slots_) {
        next = slot.retry_at_ns != 0 && (next == 0 || slot.retry_at_ns < next) ? slot.retry_at_ns : next;
    }
    constexpr std::int64_t longest = 1000;
    return next == 0 ? static_cast<int>(longest)
                     : static_cast<int>(std::clamp<std::int64_t>((next - meters::Clock::monotonic_ns()) / 1'000'000 + 1,
                                                                 0, longest));
}

std::size_t S3Queue::reap(std::span<Completion> done) {
    std::size_t count = 0;
    while (count == 0 && in_flight_ > 0) {
        start_due_retries();
        int running = 0;
        if (curl_.multi_perform(multi_, &running) != objects::curl_ok) {
            failure_ = "libcurl cannot continue its requests";
            return 0;
        }
        int queued = 0;
        while (count < done.size()) {
            const objects::CurlMessage* message = curl_.multi_info_read(multi_, &queued);
            if (message == nullptr) {
                break;
            }
            void* const easy = message->easy;
            const int code = message->data.code;
            char* data = nullptr;
            curl_.easy_getinfo(easy, objects::curl_info_user_data, &data);
            curl_.multi_remove_handle(multi_, easy);
            if (finish_request(*reinterpret_cast<Slot*>(data), code, done[count])) {
                ++count;
                --in_flight_;
            }
        }
        if (count == 0) {
            curl_.multi_poll(multi_, nullptr, 0, wait_ms(), nullptr);
        }
    }
    return count;
}

}  // namespace sonde::backends
