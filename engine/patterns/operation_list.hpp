// SPDX-License-Identifier: Apache-2.0
// Operations that a replay issues, read from a file: which call, on which file, at which offset, how many bytes, after
// which think time. The format is schema/operations; files have numbers only, so no path can leave the target.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sonde::patterns {

enum class ReplayCall : std::uint8_t { read, write, open, fsync, close, stat, remove };
inline constexpr std::size_t operation_kinds = 7;

/// Bits of ListedOperation::flags, for `open` only.
enum OpenFlag : std::uint8_t { open_reads = 1, open_writes = 2, open_creates = 4, open_truncates = 8 };

/// One operation as it lies in the file, little-endian.
struct ListedOperation {
    std::uint64_t think_ns = 0;  ///< idle time before the operation
    std::uint64_t offset = 0;    ///< read, write: bytes from the start of the file
    std::uint32_t length = 0;    ///< read, write: bytes
    std::uint32_t file = 0;
    std::uint16_t handle = 0;  ///< which of the task's open files; of stat and remove 0
    ReplayCall kind = ReplayCall::read;
    std::uint8_t flags = 0;
    std::uint32_t reserved = 0;
};
static_assert(sizeof(ListedOperation) == 32);

/// The beginning of the file.
struct OperationListHeader {
    std::array<char, 8> magic{'S', 'O', 'N', 'D', 'E', 'O', 'P', 'S'};
    std::uint32_t version = 1;
    std::uint32_t tasks = 0, files = 0;
    std::uint32_t handles = 0;           ///< files that one task has open at once, at most
    std::uint32_t largest_transfer = 0;  ///< bytes of the longest read or write
    std::uint32_t reserved = 0;
    std::uint64_t operations = 0;  ///< of all tasks
    std::uint64_t file_bytes = 0;  ///< sum of the sizes of all files
    std::array<std::uint64_t, 2> reserved_end{};
};
static_assert(sizeof(OperationListHeader) == 64);

/// The operations of one task.
struct TaskOperations {
    std::vector<ListedOperation> operations;
    std::uint64_t bytes = 0;  ///< of reads and writes
    std::uint32_t handles = 1;
};

/// Reads a whole file and checks everything in it: sizes, kinds, and that reads, writes, fsyncs and closes meet an open
/// file. Returns its header. Throws plan::PlanError, one sentence that names the file, the task and the operation.
OperationListHeader check_operation_list(const std::string& path);
/// The header alone, of a file that was checked. Throws as check_operation_list().
OperationListHeader read_operation_list_header(const std::string& path);
/// The operations of one task of a file that was checked. Throws plan::PlanError when it cannot be read any more.
TaskOperations read_task_operations(const std::string& path, int task);

}  // namespace sonde::patterns
