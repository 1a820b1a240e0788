// SPDX-License-Identifier: Apache-2.0
#include "files/lost_errors.hpp"

#include "model/candidate_table.hpp"
#include "system/text.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <cerrno>
#include <cstring>

namespace sonde::buffer {

namespace {

using system::Text;

void name_error(Text& text, int error) noexcept {
    constexpr struct {
        int number;
        const char* name;
    } names[] = {{EIO, "EIO, input/output error"},
                 {ENOSPC, "ENOSPC, no space left on device"},
                 {EDQUOT, "EDQUOT, disk quota exceeded"},
                 {EFBIG, "EFBIG, file too large"},
                 {ESTALE, "ESTALE, stale file handle"}};
    for (const auto& entry : names) {
        if (entry.number == error) {
            text << entry.name;
            return;
        }
    }
    text << "error " << error;
}

void send_to_system_log(const char* line, std::size_t length) noexcept {
    const long fd = raw::call(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, "/dev/log", sizeof("/dev/log"));
    if (fd >= 0 && raw::call(SYS_connect, fd, raw::number(&address), sizeof(address)) == 0) {
        raw::call(SYS_sendto, fd, raw::number(line), static_cast<long>(length), MSG_NOSIGNAL, 0, 0);
    }
    if (fd >= 0) {
        raw::call(SYS_close, fd);
    }
}

}  // namespace

void report_lost_error(const File& file, int error) noexcept {
    constexpr const char* priority = "<11>";  // user, error
    constexpr std::size_t priority_length = 4;
    Text text;
    text << priority << "sonde: " << file.path << ": a delayed write failed (";
    name_error(text, error);
    text << "), and no call of the program reported it; data is missing from the file\n";
    // Number 2 may be a file of the program by now.
    if (candidate_state(2) == unseen && !in_table(2)) {
        raw::call(SYS_write, 2, raw::number(text.data() + priority_length),
                  static_cast<long>(text.length() - priority_length));
    }
    send_to_system_log(text.data(), text.length() - 1);
}

void report_unseen_errors(File& file) noexcept {
    bool unseen_error = false;
    for (Description* description = file.ends.descriptions; description != nullptr; description = description->next) {
        unseen_error |= description->error_seen != file.errors.count;
        description->error_seen = file.errors.count;
    }
    if (unseen_error) {
        report_lost_error(file, file.errors.last);
    }
}

}  // namespace sonde::buffer
