// SPDX-License-Identifier: Apache-2.0
#include "system/system_log.hpp"

#include "system/raw.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <cstring>

namespace sonde::system {

void send_to_system_log(const char* line, std::size_t length) noexcept {
    const long fd = raw::call(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, "/dev/log", sizeof("/dev/log"));
    if (fd >= 0 && raw::call(SYS_connect, fd, raw::pointer_to_number(&address), sizeof(address)) == 0) {
        raw::call(SYS_sendto, fd, raw::pointer_to_number(line), static_cast<long>(length), MSG_NOSIGNAL, 0, 0);
    }
    if (fd >= 0) {
        raw::call(SYS_close, fd);
    }
}

}  // namespace sonde::system
