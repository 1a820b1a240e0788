// SPDX-License-Identifier: Apache-2.0
// Suspends buffering of a file during a call that the buffer does not execute.
#include "files/passthrough.hpp"

#include "files/candidates.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"

#include <pthread.h>
#include <cerrno>

namespace sonde::buffer {

PassThrough::PassThrough(int fd) noexcept {
    const system::Critical critical;
    consider_unseen_descriptor(fd);
    Description* description = nullptr;
    File* file = is_registered_descriptor(fd) ? lock_file_of_descriptor(fd, description) : nullptr;
    enter(file);
}

PassThrough::PassThrough(dev_t device, ino_t inode) noexcept {
    const system::Critical critical;
    enter(find_file(device, inode));
}

void PassThrough::enter(File* file) noexcept {
    if (file == nullptr) {
        return;
    }
    const Mode mode = file->mode.load(std::memory_order_relaxed);
    if (mode == Mode::Active || mode == Mode::Suspended) {
        ++file->active_calls.exclusive_calls;
        if (mode == Mode::Active) {
            ++file->statistics.interruptions;
            suspend_buffering(*file);
        }
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
        file_ = file;
        generation_ = file->generation;
    }
    file->lock.unlock();
}

PassThrough::~PassThrough() {
    const system::Critical critical;
    if (file_ == nullptr) {
        return;
    }
    const int saved_errno = errno;
    file_->lock.lock();
    if (file_->generation == generation_) {
        --file_->active_calls.exclusive_calls;
        if (file_->active_calls.exclusive_calls == 0 && !file_->is_retry_planned &&
            !state.has_ended.load(std::memory_order_relaxed)) {
            resume_buffering(*file_);
        }
    }
    file_->lock.unlock();
    pthread_setcancelstate(cancel_, nullptr);
    errno = saved_errno;
}

}  // namespace sonde::buffer
