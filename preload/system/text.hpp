// SPDX-License-Identifier: Apache-2.0
// Text in a buffer of fixed size, for messages and reports where neither malloc nor stdio may be used.
#pragma once

#include "system/raw.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sonde::system {

/// Text that does not fit is cut off. With `fd` set, a full buffer is written to it instead.
class Text {
 public:
    // cppcheck-suppress uninitMemberVar  ; filled before it is read
    explicit Text(int fd = -1) noexcept : fd_(fd) {}
    Text& operator<<(const char* text) noexcept { return add(text, std::strlen(text)); }
    Text& operator<<(char sign) noexcept { return add(&sign, 1); }
    Text& operator<<(std::uint64_t value) noexcept {
        char digits[24];
        std::size_t begin = sizeof(digits);
        do {
            digits[--begin] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value != 0);
        return add(digits + begin, sizeof(digits) - begin);
    }
    Text& operator<<(std::int64_t value) noexcept {
        if (value < 0) {
            *this << '-';
            return *this << (~static_cast<std::uint64_t>(value) + 1);
        }
        return *this << static_cast<std::uint64_t>(value);
    }
    Text& operator<<(int value) noexcept { return *this << static_cast<std::int64_t>(value); }
    /// `thousandths` / 1000 with three decimals.
    Text& decimal(std::uint64_t thousandths) noexcept {
        const auto fraction = static_cast<unsigned>(thousandths % 1000);
        *this << thousandths / 1000 << '.' << static_cast<char>('0' + fraction / 100);
        return *this << static_cast<char>('0' + fraction / 10 % 10) << static_cast<char>('0' + fraction % 10);
    }
    Text& seconds(std::uint64_t ns) noexcept {
        std::uint64_t fraction = ns % 1'000'000'000;
        char digits[10] = {'.'};
        for (int digit = 9; digit > 0; --digit, fraction /= 10) {
            digits[digit] = static_cast<char>('0' + fraction % 10);
        }
        *this << ns / 1'000'000'000;
        return add(digits, sizeof(digits));
    }
    /// Appends a JSON string with its quotes. Bytes that are not UTF-8 (file names may have any) become U+FFFD.
    Text& json(const char* text) noexcept;

    Text& add(const char* text, std::size_t length) noexcept {
        while (length > 0) {
            std::size_t room = sizeof(data_) - length_;
            if (room == 0) {
                if (!flush()) {
                    return *this;
                }
                room = sizeof(data_);
            }
            const std::size_t part = length < room ? length : room;
            std::memcpy(data_ + length_, text, part);
            length_ += part;
            text += part;
            length -= part;
        }
        return *this;
    }
    const char* data() const noexcept { return data_; }
    std::size_t length() const noexcept { return length_; }
    void clear() noexcept { length_ = 0; }
    /// Writes the buffered text to `fd`. Returns false if there is no descriptor or the write fails.
    bool flush() noexcept {
        std::size_t done = 0;
        while (fd_ >= 0 && done < length_) {
            const long result =
                raw::call(SYS_write, fd_, raw::pointer_to_number(data_ + done), static_cast<long>(length_ - done));
            if (result == -4) {  // EINTR
                continue;
            }
            if (result <= 0) {
                fd_ = -1;
                break;
            }
            done += static_cast<std::size_t>(result);
        }
        const bool good = fd_ >= 0;
        if (good) {
            length_ = 0;
        }
        return good;
    }

 private:
    int fd_;
    std::size_t length_ = 0;
    char data_[4096];
};

}  // namespace sonde::system
