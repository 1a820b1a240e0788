// SPDX-License-Identifier: Apache-2.0
#include "ranks/frame_link.hpp"

#include "ranks/team_error.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sonde::ranks {
namespace {

constexpr std::uint32_t frame_mark = 0x534f4e44;  // "SOND": also differs on a machine of the other byte order
constexpr std::uint64_t max_content = 1ULL << 30U;

struct FrameHeader {
    std::uint32_t mark = frame_mark;
    FrameKind kind = FrameKind::message;
    std::int32_t from = 0, to = 0;
    std::uint64_t bytes = 0;
};

void set_nonblocking(int descriptor) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

void remove_done(std::string& buffer, std::size_t& done) {
    constexpr std::size_t worth_moving = 1U << 16U;
    if (done == buffer.size()) {
        buffer.clear();
        done = 0;
    } else if (done > worth_moving && done > buffer.size() / 2) {
        buffer.erase(0, done);
        done = 0;
    }
}

}  // namespace

FrameLink::FrameLink(int in, int out) : in_(in), out_(out) {
    set_nonblocking(in_);
    set_nonblocking(out_);
}

FrameLink::FrameLink(FrameLink&& other) noexcept
    : in_(std::exchange(other.in_, -1)),
      out_(std::exchange(other.out_, -1)),
      incoming_(std::move(other.incoming_)),
      outgoing_(std::move(other.outgoing_)),
      taken_(other.taken_),
      sent_(other.sent_) {
}

void FrameLink::close() {
    if (in_ >= 0) {
        ::close(in_);
    }
    if (out_ >= 0 && out_ != in_) {
        ::close(out_);
    }
    in_ = out_ = -1;
}

void FrameLink::close_output() {
    if (out_ >= 0 && out_ != in_) {
        ::close(out_);
    }
    out_ = -1;
}

bool FrameLink::read_available() {
    std::array<char, 1U << 16U> buffer{};
    for (;;) {
        const ssize_t count = read(in_, buffer.data(), buffer.size());
        if (count > 0) {
            incoming_.append(buffer.data(), static_cast<std::size_t>(count));
        } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
            return false;
        } else if (errno == EAGAIN) {
            return true;
        }
    }
}

std::optional<Frame> FrameLink::take_frame() {
    FrameHeader header;
    if (incoming_.size() - taken_ < sizeof header) {
        return std::nullopt;
    }
    std::memcpy(&header, incoming_.data() + taken_, sizeof header);
    if (header.mark != frame_mark || header.bytes > max_content) {
        throw TeamError("what arrives from another host is no message of sonde-engine");
    }
    if (incoming_.size() - taken_ - sizeof header < header.bytes) {
        return std::nullopt;
    }
    Frame frame{header.kind, header.from, header.to, incoming_.substr(taken_ + sizeof header, header.bytes)};
    taken_ += sizeof header + header.bytes;
    remove_done(incoming_, taken_);
    return frame;
}

std::optional<std::string> FrameLink::take_line() {
    const std::size_t end = incoming_.find('\n', taken_);
    if (end == std::string::npos) {
        return std::nullopt;
    }
    std::string line = incoming_.substr(taken_, end - taken_);
    taken_ = end + 1;
    remove_done(incoming_, taken_);
    return line;
}

void FrameLink::append(const Frame& frame) {
    if (out_ < 0) {
        return;
    }
    FrameHeader header;
    header.kind = frame.kind;
    header.from = frame.from;
    header.to = frame.to;
    header.bytes = frame.content.size();
    outgoing_.append(reinterpret_cast<const char*>(&header), sizeof header);
    outgoing_ += frame.content;
}

bool FrameLink::flush() {
    while (has_unsent()) {
        const ssize_t count = write(out_, outgoing_.data() + sent_, outgoing_.size() - sent_);
        if (count >= 0) {
            sent_ += static_cast<std::size_t>(count);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            return false;
        }
    }
    remove_done(outgoing_, sent_);
    return true;
}

}  // namespace sonde::ranks
