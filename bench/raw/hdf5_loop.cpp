// SPDX-License-Identifier: Apache-2.0
// The barest loop over H5Dwrite and H5Dread, as a program writes it that uses HDF5: one dataset of 64-bit integers, a
// hyperslab of it in each call, no clock and no meter inside a pass. bench/hdf5.py compiles and starts it.
// hdf5_loop FILE TRANSFER SIZE DATA SECONDS COLLECTIVE: fills the file, then rewrites and reads it in passes for so
// many seconds each; prints {"rewrite": {"rate": operations per second, "cpu_ns": of an operation}, "read": …}. DATA:
// bytes of different data, a power of two.
#include <hdf5.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

namespace {

/// One sentence for the user; exit code 3.
struct LoopError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <class Result>
Result check(Result result, const char* call) {
    if (result < 0) {
        throw LoopError(std::string(call) + " failed");
    }
    return result;
}

struct Task {
    const char* file;
    hsize_t transfer, size, data;  ///< bytes
    double seconds;
    bool collective;
};

struct OpenDataset {
    hid_t file, dataset, file_space, memory_space, transfer_list;
};

OpenDataset make_dataset(const Task& task) {
    OpenDataset open{};
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    check(H5Pset_fapl_mpio(access, MPI_COMM_SELF, MPI_INFO_NULL), "H5Pset_fapl_mpio");
    open.file = check(H5Fcreate(task.file, H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
    const hsize_t elements = task.size / sizeof(long long), per_transfer = task.transfer / sizeof(long long);
    open.file_space = H5Screate_simple(1, &elements, nullptr);
    open.memory_space = H5Screate_simple(1, &per_transfer, nullptr);
    open.dataset = check(H5Dcreate2(open.file, "Dataset-0000.0000", H5T_NATIVE_LLONG, open.file_space, H5P_DEFAULT,
                                    H5P_DEFAULT, H5P_DEFAULT),
                         "H5Dcreate2");
    open.transfer_list = H5Pcreate(H5P_DATASET_XFER);
    if (task.collective) {
        check(H5Pset_dxpl_mpio(open.transfer_list, H5FD_MPIO_COLLECTIVE), "H5Pset_dxpl_mpio");
    }
    H5Pclose(access);
    return open;
}

void close_dataset(const OpenDataset& open) {
    H5Pclose(open.transfer_list);
    H5Dclose(open.dataset);
    H5Sclose(open.memory_space);
    H5Sclose(open.file_space);
    check(H5Fclose(open.file), "H5Fclose");
}

/// The loop under comparison. A template, so that nothing is decided inside.
template <bool write>
[[gnu::noinline]] hsize_t pass(const Task& task, const OpenDataset& open, std::byte* buffer) {
    const hsize_t count = task.transfer / sizeof(long long), single = 1;
    for (hsize_t offset = 0; offset < task.size; offset += task.transfer) {
        const hsize_t start = offset / sizeof(long long);
        check(H5Sselect_hyperslab(open.file_space, H5S_SELECT_SET, &start, nullptr, &single, &count),
              "H5Sselect_hyperslab");
        std::byte* const from = buffer + (offset & (task.data - 1));
        check(write ? H5Dwrite(open.dataset, H5T_NATIVE_LLONG, open.memory_space, open.file_space, open.transfer_list,
                               from)
                    : H5Dread(open.dataset, H5T_NATIVE_LLONG, open.memory_space, open.file_space, open.transfer_list,
                              buffer),
              write ? "H5Dwrite" : "H5Dread");
    }
    return task.size / task.transfer;
}

double read_thread_cpu() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Passes for the time of the task; one pass where it is 0. Returns the result as JSON.
template <bool write>
std::string run_passes(const Task& task, const OpenDataset& open, std::byte* buffer) {
    const double begin = MPI_Wtime(), cpu_begin = read_thread_cpu();
    double seconds = 0, operations = 0;
    do {
        operations += static_cast<double>(pass<write>(task, open, buffer));
        seconds = MPI_Wtime() - begin;
    } while (seconds < task.seconds);
    const double cpu_ns = (read_thread_cpu() - cpu_begin) / operations * 1e9;
    return "{\"rate\": " + std::to_string(operations / seconds) + ", \"cpu_ns\": " + std::to_string(cpu_ns) + "}";
}

/// Page-aligned memory with random bytes.
std::shared_ptr<std::byte> make_buffer(std::size_t bytes) {
    constexpr std::size_t page = 4096;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
    if (memory == nullptr) {
        throw LoopError("no memory for the data");
    }
    std::mt19937_64 random(1);
    for (std::size_t position = 0; position < bytes; position += sizeof(std::uint64_t)) {
        const std::uint64_t value = random();
        std::memcpy(memory + position, &value, sizeof value);
    }
    return {memory, std::free};
}

void run(const Task& task) {
    const std::shared_ptr<std::byte> buffer = make_buffer(task.data + task.transfer);
    const OpenDataset open = make_dataset(task);
    pass<true>(task, open, buffer.get());
    const std::string rewrite = run_passes<true>(task, open, buffer.get());
    const std::string read = run_passes<false>(task, open, buffer.get());
    close_dataset(open);
    std::printf("{\"rewrite\": %s, \"read\": %s}\n", rewrite.c_str(), read.c_str());
}

}  // namespace

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int result = 0;
    try {
        if (count != 7) {
            throw LoopError("use: hdf5_loop FILE TRANSFER SIZE DATA SECONDS COLLECTIVE");
        }
        run({arguments[1], std::strtoull(arguments[2], nullptr, 10), std::strtoull(arguments[3], nullptr, 10),
             std::strtoull(arguments[4], nullptr, 10), std::strtod(arguments[5], nullptr), arguments[6][0] == '1'});
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "hdf5_loop: %s.\n", failure.what());
        result = 3;
    }
    MPI_Finalize();
    return result;
}
