// SPDX-License-Identifier: Apache-2.0
// io_uring in a loop: registered buffers and file, all free slots handed over with one call (one by one to a device).
#include "raw.hpp"

#include <liburing.h>
#include <unistd.h>
#include <cstring>

namespace sonde::bench {

namespace {

constexpr unsigned best_flags = 1U << 12U | 1U << 13U;  // SINGLE_ISSUER, DEFER_TASKRUN

class Queue {
 public:
    Queue(const Task& task, int descriptor)
        : task_(task), buffer_(buffer_of(task.transfer * task.depth)), order_(order_of(task)) {
        if (io_uring_queue_init(task.depth, &ring_, best_flags) != 0 &&
            io_uring_queue_init(task.depth, &ring_, 0) != 0) {
            throw RawError("io_uring cannot be used here");
        }
        std::vector<iovec> vectors;
        for (unsigned slot = 0; slot < task.depth; ++slot) {
            vectors.push_back({buffer_.get() + slot * task.transfer, task.transfer});
        }
        if (io_uring_register_buffers(&ring_, vectors.data(), task.depth) != 0 ||
            io_uring_register_files(&ring_, &descriptor, 1) != 0) {
            throw RawError("io_uring cannot register buffers or files here");
        }
        io_uring_register_ring_fd(&ring_);
    }
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    ~Queue() { io_uring_queue_exit(&ring_); }

    Count run() {
        Count count;
        const double cpu = thread_cpu();
        const double begin = now();
        for (unsigned slot = 0; slot < task_.depth; ++slot) {
            put(slot);
        }
        for (;;) {
            io_uring_submit_and_wait(&ring_, 1);
            const unsigned ended = reap();
            count.operations += ended;
            // The clock is read once a pass.
            if (passed_) {
                passed_ = false;
                count.seconds = now() - begin;
                if (count.seconds >= task_.seconds) {
                    count.cpu_seconds = thread_cpu() - cpu;
                    return count;
                }
            }
        }
    }

 private:
    void put(unsigned slot) {
        io_uring_sqe* entry = io_uring_get_sqe(&ring_);
        std::byte* buffer = buffer_.get() + slot * task_.transfer;
        const std::uint64_t offset = order_[next_] * std::uint64_t{task_.transfer};
        next_ = next_ + 1 == order_.size() ? 0 : next_ + 1;
        passed_ = passed_ || next_ == 0;
        const auto length = static_cast<unsigned>(task_.transfer);
        if (task_.write) {
            io_uring_prep_write_fixed(entry, 0, buffer, length, offset, static_cast<int>(slot));
        } else {
            io_uring_prep_read_fixed(entry, 0, buffer, length, offset, static_cast<int>(slot));
        }
        entry->flags |= IOSQE_FIXED_FILE;
        entry->user_data = slot;
        if (task_.direct) {
            io_uring_submit(&ring_);  // a device that is told in batches has less to do at a time
        }
    }

    unsigned reap() {
        unsigned ended = 0;
        unsigned head = 0;
        io_uring_cqe* entry = nullptr;
        io_uring_for_each_cqe(&ring_, head, entry) {
            if (entry->res != static_cast<int>(task_.transfer)) {
                throw RawError("an operation on " + task_.file + " gave " + std::to_string(entry->res));
            }
            put(static_cast<unsigned>(entry->user_data));
            ++ended;
        }
        io_uring_cq_advance(&ring_, ended);
        return ended;
    }

    const Task& task_;
    std::shared_ptr<std::byte> buffer_;
    std::vector<std::uint32_t> order_;
    io_uring ring_{};
    std::size_t next_ = 0;
    bool passed_ = false;
};

}  // namespace

Count uring_loop(const Task& task) {
    const int descriptor = open_file(task);
    Count count;
    {
        Queue queue(task, descriptor);
        count = queue.run();
    }
    ::close(descriptor);
    return count;
}

}  // namespace sonde::bench
