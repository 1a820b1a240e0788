// SPDX-License-Identifier: Apache-2.0
#include "records/writer.hpp"

#include "meters/clock.hpp"
#include "plan/json_io.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace sonde::records {

void Writer::write_line(const char* type, const nlohmann::ordered_json& content) {
    if (listener_) {
        listener_(type, content);
    }
    if (descriptor_ < 0) {
        return;
    }
    nlohmann::ordered_json members;
    members["type"] = type;
    members["t"] = static_cast<double>((now_ ? now_() : meters::Clock::monotonic_ns()) - epoch_ns_) / 1e9;
    members.update(content);
    const std::string text = plan::serialize_json(members) + "\n";
    if (acquire_turn()) {
        is_unused_ = false;
        write_all(text);
        release_turn();
    }
}

bool Writer::acquire_turn() {
    if (writer_lock_ == nullptr) {
        return true;
    }
    if (role_ == Role::monitor) {
        writer_lock_->monitor.store(1);
        if (writer_lock_->engine.load() == 0) {
            return true;
        }
        writer_lock_->monitor.store(0);
        return false;
    }
    writer_lock_->engine.store(1);
    // The wait is limited, because the monitor may have been killed while it held the lock.
    constexpr timespec moment{0, 100'000};
    for (int i = 0; i < 10'000 && writer_lock_->monitor.load() != 0; ++i) {
        ::nanosleep(&moment, nullptr);
    }
    return true;
}

void Writer::release_turn() {
    if (writer_lock_ != nullptr) {
        (role_ == Role::engine ? writer_lock_->engine : writer_lock_->monitor).store(0);
    }
}

void Writer::write_all(const std::string& text) {
    std::size_t written = 0;
    while (written < text.size()) {
        const ssize_t count = ::write(descriptor_, text.data() + written, text.size() - written);
        if (count >= 0) {
            written += static_cast<std::size_t>(count);
        } else if (errno == EAGAIN) {
            pollfd room{descriptor_, POLLOUT, 0};  // the pipe may be non-blocking
            ::poll(&room, 1, 1000);
        } else if (errno != EINTR) {
            if (first_error_.empty()) {
                first_error_ = "a line of the record " + path_ + " could not be written: " + std::strerror(errno);
            }
            truncate_incomplete_line(written);
            return;
        }
    }
}

void Writer::truncate_incomplete_line(std::size_t written) const {
    struct stat info {};
    const off_t end = written > 0 ? ::lseek(descriptor_, 0, SEEK_CUR) : -1;
    // Only when no other process has appended to the file.
    if (end >= 0 && ::fstat(descriptor_, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == end) {
        (void)!::ftruncate(descriptor_, end - static_cast<off_t>(written));
    }
}

void Writer::remove_incomplete_line() {
    struct stat info {};
    if (descriptor_ < 0 || path_ == "-" || ::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
        return;
    }
    std::array<char, 4096> piece{};
    for (off_t end = info.st_size; end > 0;) {
        const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(piece.size()));
        const ssize_t got = ::pread(descriptor_, piece.data(), static_cast<std::size_t>(end - begin), begin);
        if (got != end - begin) {
            break;
        }
        const std::string_view text(piece.data(), static_cast<std::size_t>(got));
        const std::size_t newline = text.rfind('\n');
        if (newline != std::string_view::npos || begin == 0) {
            const off_t complete = newline == std::string_view::npos ? 0 : begin + static_cast<off_t>(newline) + 1;
            (void)!(complete < info.st_size ? ::ftruncate(descriptor_, complete) : 0);
            break;
        }
        end = begin;
    }
}

}  // namespace sonde::records
