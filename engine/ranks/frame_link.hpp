// SPDX-License-Identifier: Apache-2.0
// Frames on a pair of byte streams: how processes that were started over ssh reach each other without MPI. Each process
// has a socket to the node command of its host, and each node command the standard input and output of its ssh, at the
// other end of which the hub forwards what is for other hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace sonde::ranks {

enum class FrameKind : std::uint32_t {
    start,    ///< hub to node command: what to start
    message,  ///< process to process
    ended,    ///< process `from` has ended and sends nothing more; the content is its exit code
    output,   ///< node command to hub: what a process printed on standard output
    signal,   ///< hub to node command: the number of a signal for its processes
};

/// Destination of a frame for all processes but the sender.
inline constexpr std::int32_t all_processes = -1;

struct Frame {
    FrameKind kind = FrameKind::message;
    std::int32_t from = 0;
    std::int32_t to = all_processes;
    std::string content;
};

/// Both directions of a connection. Descriptors are not blocking, so that neither side can wait for the other while
/// both have something to send. Owns its descriptors.
class FrameLink {
 public:
    /// `in` and `out` may be the same descriptor.
    FrameLink(int in, int out);
    FrameLink(FrameLink&& other) noexcept;
    FrameLink(const FrameLink&) = delete;
    FrameLink& operator=(const FrameLink&) = delete;
    FrameLink& operator=(FrameLink&&) = delete;
    ~FrameLink() { close(); }

    int input() const { return in_; }
    int output() const { return out_; }
    bool is_open() const { return in_ >= 0; }
    void close();
    /// Signals the end of the stream to the other side, whose data can still be read.
    void close_output();

    /// Reads what has arrived. Returns false at the end of the stream; what came before it can still be taken.
    bool read_available();
    /// The next whole frame. Throws TeamError for what is no frame.
    std::optional<Frame> take_frame();
    /// The bytes up to the first newline, which is taken with them; empty optional when there is none yet.
    std::optional<std::string> take_line();
    /// Adds a frame to what flush() sends.
    void append(const Frame& frame);
    /// Sends as much as the stream accepts now. Returns false when the other side is gone.
    bool flush();
    bool has_unsent() const { return out_ >= 0 && sent_ < outgoing_.size(); }

 private:
    int in_, out_;
    std::string incoming_, outgoing_;
    std::size_t taken_ = 0, sent_ = 0;  ///< bytes at the beginning of incoming_ and outgoing_ that are done with
};

}  // namespace sonde::ranks
