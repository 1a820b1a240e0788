// SPDX-License-Identifier: Apache-2.0
#include "ranks/mpi_waiting.hpp"

#include "ranks/mpi_module_parts.hpp"

#include <sched.h>
#include <time.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace sonde::ranks::mpi {
namespace {

thread_local std::string sentence;
// MPI itself is one object per process; so is this.
int (*go_on)(void*) = nullptr;
void* go_on_context = nullptr;

constexpr int eager_turns = 200;  // yields: keeps short exchanges (clock alignment) short
constexpr long first_pause_ns = 20'000;
constexpr long longest_pause_ns = 500'000;

void pause(long nanoseconds) {
    const timespec time{0, nanoseconds};
    nanosleep(&time, nullptr);
}

int errno_of(int error_class) {
    const std::array<std::pair<int, int>, 14> known{{{MPI_ERR_NO_SUCH_FILE, ENOENT},
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
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const auto& entry) { return entry.first == error_class; });
    return found != known.end() ? found->second : EIO;
}

}  // namespace

bool one_thread_only = false;
MPI_Comm members = MPI_COMM_NULL;

void set_watch(int (*question)(void*), void* context) {
    go_on = question;
    go_on_context = context;
}

const char* last_error() {
    return sentence.c_str();
}

int failed(int code, const std::string& doing) {
    if (code == MPI_SUCCESS) {
        return 0;
    }
    std::array<char, MPI_MAX_ERROR_STRING + 1> words{};
    int length = 0;
    int error_class = MPI_ERR_OTHER;
    MPI_Error_string(code, words.data(), &length);
    MPI_Error_class(code, &error_class);
    std::string text(words.data(), static_cast<std::size_t>(std::max(length, 0)));
    std::replace(text.begin(), text.end(), '\n', ' ');
    sentence = doing + ": " + text;
    return -errno_of(error_class);
}

int refused(const std::string& why) {
    sentence = why;
    return -EOPNOTSUPP;
}

int wait_for(int code, MPI_Request& request, const std::string& doing, MPI_Status* status) {
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
        if (go_on != nullptr && go_on(go_on_context) == 0) {
            sentence = doing + ": given up because another process is gone";
            return -ECANCELED;
        }
        pause(pause_ns);
        pause_ns = std::min(pause_ns * 2, longest_pause_ns);
    }
    return failed(code, doing);
}

MPI_Comm member_group() {
    return members != MPI_COMM_NULL ? members : MPI_COMM_WORLD;
}

}  // namespace sonde::ranks::mpi
