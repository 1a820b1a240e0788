// SPDX-License-Identifier: Apache-2.0
#include "ranks/local_socket.hpp"

#include <sys/socket.h>
#include <array>
#include <cerrno>
#include <cstring>

namespace sonde::ranks {

bool send_descriptor(int socket, const void* data, std::size_t bytes, int descriptor) {
    iovec part{const_cast<void*>(data), bytes};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        message.msg_control = space.data();
        message.msg_controllen = space.size();
        cmsghdr* control = CMSG_FIRSTHDR(&message);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(control), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

bool receive_descriptor(int socket, void* data, std::size_t bytes, int& descriptor) {
    descriptor = -1;
    iovec part{data, bytes};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    ssize_t got = 0;
    do {
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    const cmsghdr* control = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS) {
        std::memcpy(&descriptor, CMSG_DATA(control), sizeof descriptor);
    }
    return got == static_cast<ssize_t>(bytes);
}

}  // namespace sonde::ranks
