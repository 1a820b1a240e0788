// SPDX-License-Identifier: Apache-2.0
// Processes and messages of the MPI module.
#include "ranks/mpi_interface.hpp"

#include "ranks/mpi_file.hpp"
#include "ranks/mpi_waiting.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sonde::ranks::mpi {
namespace {

MPI_Comm leaders = MPI_COMM_NULL;  // null when there is only one leader
constexpr int tag = 7;
constexpr int member_tag = 8;
constexpr std::size_t longest_message = 1U << 30U;  // counts are ints

// "MPICH Version:      5.0.2\nMPICH Release date: …" and "Open MPI v4.1.4, package: …" both become name and version.
void name_library(char* out, std::size_t size) {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    std::string name(text.data());
    name.resize(std::min(name.size(), name.find_first_of("\n,(")));
    const auto label = name.find(" Version:");
    if (label != std::string::npos) {
        const auto version = name.find_first_not_of(" \t", label + std::strlen(" Version:"));
        const std::string number = version != std::string::npos ? " " + name.substr(version) : "";
        name.replace(label, std::string::npos, number);
    }
    name.erase(name.find_last_not_of(" \t\r") + 1);
    std::snprintf(out, size, "%s", name.c_str());
}

// MPI_THREAD_MULTIPLE, because each thread of a process may have its own file. MPI_THREAD_SERIALIZED suffices for
// everything else: a task thread calls barriers, the main thread calls collectives between phases.
int start(int* rank, int* size, char* library, std::size_t library_size) {
    name_library(library, library_size);
    // MPICH would end the process here: it uses PMI, but mpiexec of Open MPI uses PMIx.
    if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr && std::strncmp(library, "MPICH", 5) == 0) {
        return report_refusal(
            std::string("mpiexec of Open MPI started this, and the MPI module here is for ") + library +
            ": build one for Open MPI with `sonde doctor --build-mpi`, or start with the mpiexec of MPICH");
    }
    int provided = MPI_THREAD_SINGLE;
    if (const int error =
            report_mpi_error(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
        error != 0) {
        return error;
    }
    if (provided < MPI_THREAD_SERIALIZED) {
        return report_mpi_error(MPI_ERR_UNSUPPORTED_OPERATION,
                                "this MPI library allows calls from the main thread only");
    }
    one_thread_only = provided < MPI_THREAD_MULTIPLE;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    return 0;
}

int stop() {
    if (leaders != MPI_COMM_NULL) {
        MPI_Comm_free(&leaders);
    }
    if (members != MPI_COMM_NULL) {
        MPI_Comm_free(&members);
    }
    return report_mpi_error(MPI_Finalize(), "MPI_Finalize");
}

// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): wait_for_request() completes every request, by testing.
int allgather(const void* own_data, std::size_t bytes, void* all_data) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int count = static_cast<int>(bytes);
    const int code = MPI_Iallgather(own_data, count, MPI_BYTE, all_data, count, MPI_BYTE, MPI_COMM_WORLD, &request);
    return wait_for_request(code, request, "gathering from all processes");
}

int broadcast_in(MPI_Comm group, void* data, std::size_t bytes, int is_root) {
    for (std::size_t begin = 0; begin < bytes; begin += longest_message) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int count = static_cast<int>(std::min(bytes - begin, longest_message));
        const int code = MPI_Ibcast(static_cast<char*>(data) + begin, count, MPI_BYTE, is_root, group, &request);
        if (const int error = wait_for_request(code, request, "broadcasting"); error != 0) {
            return error;
        }
    }
    return 0;
}

int broadcast(void* data, std::size_t bytes, int is_root) {
    return broadcast_in(MPI_COMM_WORLD, data, bytes, is_root);
}

int any(int own_data) {
    MPI_Request request = MPI_REQUEST_NULL;
    int result = 0;
    const int code = MPI_Iallreduce(&own_data, &result, 1, MPI_INT, MPI_LOR, member_group(), &request);
    const int error = wait_for_request(code, request, "voting among all processes");
    return error != 0 ? error : static_cast<int>(result != 0);
}

int set_members(int count) {
    int size = 0;
    int rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (members != MPI_COMM_NULL) {
        MPI_Comm_free(&members);
    }
    if (count >= size || rank >= count) {
        return 0;
    }
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group chosen = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int first[1][3] = {{0, count - 1, 1}};
    int error = report_mpi_error(MPI_Group_range_incl(world, 1, first, &chosen), "choosing the tasks that take part");
    if (error == 0) {
        error = report_mpi_error(MPI_Comm_create_group(MPI_COMM_WORLD, chosen, member_tag, &members),
                                 "joining those who take part");
        MPI_Group_free(&chosen);
    }
    MPI_Group_free(&world);
    if (error == 0) {
        MPI_Comm_set_errhandler(members, MPI_ERRORS_RETURN);
    }
    return error;
}

int set_leaders(const int* ranks, int count) {
    if (count == 1) {
        return 0;
    }
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group chosen = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int error = report_mpi_error(MPI_Group_incl(world, count, ranks, &chosen), "choosing the node leaders");
    if (error == 0) {
        error =
            report_mpi_error(MPI_Comm_create_group(MPI_COMM_WORLD, chosen, tag, &leaders), "joining the node leaders");
        MPI_Group_free(&chosen);
    }
    MPI_Group_free(&world);
    if (error == 0) {
        MPI_Comm_set_errhandler(leaders, MPI_ERRORS_RETURN);
    }
    return error;
}

int leaders_maximum(std::uint64_t* values, std::size_t count) {
    if (leaders == MPI_COMM_NULL) {
        return 0;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        MPI_Iallreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_UINT64_T, MPI_MAX, leaders, &request);
    return wait_for_request(code, request, "meeting the other nodes");
}

int leaders_broadcast(void* data, std::size_t bytes) {
    return leaders == MPI_COMM_NULL ? 0 : broadcast_in(leaders, data, bytes, 0);
}

int send(int leader, const void* data, std::size_t bytes) {
    for (std::size_t begin = 0; begin < bytes; begin += longest_message) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int count = static_cast<int>(std::min(bytes - begin, longest_message));
        const int code =
            MPI_Isend(static_cast<const char*>(data) + begin, count, MPI_BYTE, leader, tag, leaders, &request);
        if (const int error = wait_for_request(code, request, "sending to another node"); error != 0) {
            return error;
        }
    }
    return 0;
}

int receive(int leader, void* data, std::size_t bytes) {
    for (std::size_t begin = 0; begin < bytes; begin += longest_message) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int count = static_cast<int>(std::min(bytes - begin, longest_message));
        const int code = MPI_Irecv(static_cast<char*>(data) + begin, count, MPI_BYTE, leader, tag, leaders, &request);
        if (const int error = wait_for_request(code, request, "receiving from another node"); error != 0) {
            return error;
        }
    }
    return 0;
}

// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

}  // namespace

}  // namespace sonde::ranks::mpi

extern "C" __attribute__((visibility("default"))) const SondeMpiModule* sonde_mpi_module(void) {
    using namespace sonde::ranks::mpi;
    static const SondeMpiModule table{
        .version = SONDE_MPI_MODULE_VERSION,
        .flavor = SONDE_MPI_FLAVOR,
        .start = start,
        .stop = stop,
        .set_wait_callback = set_wait_callback,
        .allgather = allgather,
        .broadcast = broadcast,
        .set_members = set_members,
        .any = any,
        .set_leaders = set_leaders,
        .leaders_maximum = leaders_maximum,
        .leaders_broadcast = leaders_broadcast,
        .send = send,
        .receive = receive,
        .file_open = file_open,
        .file_write = file_write,
        .file_read = file_read,
        .file_sync = file_sync,
        .file_close = file_close,
        .set_access_list = set_access_list,
        .open_dataset = open_dataset,
        .implementation = implementation,
        .last_error_message = last_error_message,
    };
    return &table;
}
