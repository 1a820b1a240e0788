// SPDX-License-Identifier: Apache-2.0
#include "ranks/mpi_waiting.hpp"

#include <sched.h>
#include <time.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace sonde::ranks::mpi {
namespace {

thread_local std::string sentence;
// Global, as MPI itself is global in a process.
int (*keep_waiting)(void*) = nullptr;
void* keep_waiting_context = nullptr;

constexpr int eager_turns = 200;  // yields before the first pause: keeps short exchanges (clock alignment) short
constexpr long first_pause_ns = 20'000;
constexpr long longest_pause_ns = 500'000;

void pause(long nanoseconds) {
    const timespec time{0, nanoseconds};
    nanosleep(&time, nullptr);
}

int to_errno(int error_class) {
    const std::array<std::pair<int, int>, 14> errno_table{{{MPI_ERR_NO_SUCH_FILE, ENOENT},
                                                           {MPI_ERR_ACCESS, EACCES},
                                                           {MPI_ERR_NO_SPACE, ENOSPC},
                                                           {MPI_ERR_QUOTA, EDQUOT},
                                                           {MPI_ERR_READ_ONLY, EROFS},
                                                           {MPI_ERR_FILE_EXISTS, EEXIST},
                                                           {MPI_ERR_FILE_IN_USE, EBUSY},
                                                           {MPI_ERR_BAD_FILE, EINVAL},
                                                           {MPI_ERR_AMODE, EINVAL},
                                                           {MPI_ERR_ARG, EINVAL},
                                                           {MPI_ERR_NOT_SAME, EINVAL},
                                                           {MPI_ERR_UNSUPPORTED_OPERATION, EOPNOTSUPP},
                                                           {MPI_ERR_NO_MEM, ENOMEM},
                                                           {MPI_ERR_IO, EIO}}};
    const auto entry =
        std::find_if(errno_table.begin(), errno_table.end(), [&](const auto& row) { return row.first == error_class; });
    return entry != errno_table.end() ? entry->second : EIO;
}

}  // namespace

bool one_thread_only = false;
MPI_Comm members = MPI_COMM_NULL;

void set_wait_callback(int (*callback)(void*), void* context) {
    keep_waiting = callback;
    keep_waiting_context = context;
}

const char* last_error_message() {
    return sentence.c_str();
}

int report_mpi_error(int code, const std::string& doing) {
    if (code == MPI_SUCCESS) {
        return 0;
    }
    std::array<char, MPI_MAX_ERROR_STRING + 1> text_buffer{};
    int length = 0;
    int error_class = MPI_ERR_OTHER;
    MPI_Error_string(code, text_buffer.data(), &length);
    MPI_Error_class(code, &error_class);
    std::string text(text_buffer.data(), static_cast<std::size_t>(std::max(length, 0)));
    std::replace(text.begin(), text.end(), '\n', ' ');
    sentence = doing + ": " + text;
    return -to_errno(error_class);
}

int report_refusal(const std::string& why) {
    sentence = why;
    return -EOPNOTSUPP;
}

int wait_for_request(int code, MPI_Request& request, const std::string& doing, MPI_Status* status) {
    long pause_ns = first_pause_ns;
    for (int turn = 0; code == MPI_SUCCESS; ++turn) {
        int done = 0;
        code = MPI_Test(&request, &done, status);
        if (done != 0 || code != MPI_SUCCESS) {
            break;
        }
        if (turn < eager_turns) {
            sched_yield();
            continue;
        }
        if (keep_waiting != nullptr && keep_waiting(keep_waiting_context) == 0) {
            sentence = doing + ": given up because another process is gone";
            return -ECANCELED;
        }
        pause(pause_ns);
        pause_ns = std::min(pause_ns * 2, longest_pause_ns);
    }
    return report_mpi_error(code, doing);
}

MPI_Comm member_group() {
    return members != MPI_COMM_NULL ? members : MPI_COMM_WORLD;
}

}  // namespace sonde::ranks::mpi
