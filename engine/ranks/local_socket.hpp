// SPDX-License-Identifier: Apache-2.0
// Sockets between processes of one node, which carry file descriptors as well as bytes.
#pragma once

#include <unistd.h>
#include <cstddef>
#include <utility>

namespace sonde::ranks {

/// Owns a file descriptor.
class Socket {
 public:
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    Socket& operator=(Socket&&) = delete;
    ~Socket() { close(); }
    int operator*() const { return descriptor_; }
    int release() { return std::exchange(descriptor_, -1); }
    /// Closes the descriptor and owns another one.
    void reset(int descriptor) {
        close();
        descriptor_ = descriptor;
    }
    void close() {
        if (descriptor_ >= 0) {
            ::close(release());
        }
    }

 private:
    int descriptor_;
};

/// Sends one packet and a descriptor with it (-1: none). Returns false when the peer is gone.
bool send_descriptor(int socket, const void* data, std::size_t bytes, int descriptor);

/// Receives one packet of exactly `bytes`, and the descriptor that came with it (-1: none).
bool receive_descriptor(int socket, void* data, std::size_t bytes, int& descriptor);

}  // namespace sonde::ranks
