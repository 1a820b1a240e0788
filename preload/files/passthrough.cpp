// SPDX-License-Identifier: Apache-2.0
// Putting a file to sleep for the time of a call that is not done here.
#include "files/passthrough.hpp"

#include "files/candidates.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"

#include <pthread.h>
#include <cerrno>

namespace sonde::buffer {

Around::Around(int fd) noexcept {
    const system::Critical critical;
    look_at_unseen(fd);
    Description* description = nullptr;
    File* file = in_table(fd) ? locked_file(fd, description) : nullptr;
    enter(file);
}

Around::Around(dev_t device, ino_t inode) noexcept {
    const system::Critical critical;
    enter(find_file(device, inode));
}

void Around::enter(File* file) noexcept {
    if (file == nullptr) {
        return;
    }
    const Mode mode = file->mode.load(std::memory_order_relaxed);
    if (mode == Mode::Active || mode == Mode::Suspended) {
        ++file->turns.around;
        if (mode == Mode::Active) {
            ++file->statistics.given_up;
            suspend_buffering(*file);
        }
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
        file_ = file;
        generation_ = file->generation;
    }
    file->lock.unlock();
}

Around::~Around() {
    const system::Critical critical;
    if (file_ == nullptr) {
        return;
    }
    const int kept = errno;
    file_->lock.lock();
    if (file_->generation == generation_) {
        --file_->turns.around;
        if (file_->turns.around == 0 && !file_->dormant && !state.ended.load(std::memory_order_relaxed)) {
            resume_buffering(*file_);
        }
    }
    file_->lock.unlock();
    pthread_setcancelstate(cancel_, nullptr);
    errno = kept;
}

}  // namespace sonde::buffer
