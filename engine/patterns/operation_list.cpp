// SPDX-License-Identifier: Apache-2.0
#include "patterns/operation_list.hpp"

#include "plan/plan_error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <numeric>

namespace sonde::patterns {
namespace {

static_assert(std::endian::native == std::endian::little, "operation lists are little-endian");

constexpr std::uint32_t max_handles = 1U << 15U;
constexpr std::uint32_t max_files = 100'000'000;
constexpr std::uint32_t max_tasks = 1U << 24U;
constexpr std::uint32_t largest_transfer = 1U << 30U;
constexpr std::uint64_t max_operations = 1ULL << 40U;
constexpr std::uint64_t longest_think_ns = 86'400'000'000'000;
constexpr std::uint64_t largest_file = 1ULL << 62U;

constexpr std::array<const char*, operation_kinds> call_names{"read",  "write", "open",  "fsync",
                                                              "close", "stat",  "remove"};

/// An operation list that is open for reading.
class OperationListFile {
 public:
    explicit OperationListFile(const std::string& path)
        : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        struct stat info {};
        if (descriptor_ < 0 || ::fstat(descriptor_, &info) != 0) {
            const int code = errno;
            close();
            fail(std::string("cannot be read: ") + std::strerror(code));
        }
        if (!S_ISREG(info.st_mode)) {
            close();
            fail("is no regular file");
        }
        size_ = static_cast<std::uint64_t>(info.st_size);
    }
    ~OperationListFile() { close(); }
    OperationListFile(const OperationListFile&) = delete;
    OperationListFile& operator=(const OperationListFile&) = delete;

    std::uint64_t size() const { return size_; }

    [[noreturn]] void fail(const std::string& reason) const {
        throw plan::PlanError("plan: replay_file " + path_ + " " + reason);
    }

    template <class Value>
    void read(std::uint64_t offset, Value* values, std::uint64_t count) const {
        auto* bytes = reinterpret_cast<char*>(values);
        std::uint64_t remaining = count * sizeof(Value);
        while (remaining > 0) {
            const ssize_t moved =
                ::pread(descriptor_, bytes, std::min<std::uint64_t>(remaining, 1U << 30U), static_cast<off_t>(offset));
            if (moved <= 0) {
                fail(moved < 0 ? std::string("cannot be read: ") + std::strerror(errno) : "became shorter meanwhile");
            }
            bytes += moved;
            offset += static_cast<std::uint64_t>(moved);
            remaining -= static_cast<std::uint64_t>(moved);
        }
    }

 private:
    void close() {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
            descriptor_ = -1;
        }
    }

    std::string path_;
    int descriptor_;
    std::uint64_t size_ = 0;
};

/// Header and tables of a list.
struct OperationListTables {
    OperationListHeader header;
    std::vector<std::uint64_t> operations_of_task;
    std::vector<std::uint64_t> size_of_file;

    std::uint64_t first_operation_at() const {
        return sizeof(OperationListHeader) + 8 * (std::uint64_t{header.tasks} + header.files);
    }
};

void check_header(const OperationListFile& file, const OperationListHeader& header) {
    if (header.magic != OperationListHeader{}.magic) {
        file.fail("is no list of operations of Sonde: `sonde replay` writes them");
    }
    if (header.version != 1) {
        file.fail("has version " + std::to_string(header.version) +
                  ", but this engine reads version 1: use the lab and the engine of one release");
    }
    const bool is_possible = header.tasks > 0 && header.tasks <= max_tasks && header.files > 0 &&
                             header.files <= max_files && header.handles > 0 && header.handles <= max_handles &&
                             header.operations > 0 && header.operations <= max_operations &&
                             header.largest_transfer <= largest_transfer && header.reserved == 0 &&
                             header.reserved_end == std::array<std::uint64_t, 2>{};
    if (!is_possible) {
        file.fail("has impossible numbers in its header: write it again with `sonde replay`");
    }
    const std::uint64_t expected = sizeof(OperationListHeader) + 8 * (std::uint64_t{header.tasks} + header.files) +
                                   sizeof(ListedOperation) * header.operations;
    if (file.size() != expected) {
        file.fail("has " + std::to_string(file.size()) + " B, but its header says " + std::to_string(expected) +
                  " B: it is incomplete, write it again");
    }
}

OperationListTables read_tables(const OperationListFile& file) {
    OperationListTables tables;
    if (file.size() < sizeof(OperationListHeader)) {
        file.fail("is no list of operations of Sonde: it is shorter than a header");
    }
    file.read(0, &tables.header, 1);
    check_header(file, tables.header);
    tables.operations_of_task.resize(tables.header.tasks);
    tables.size_of_file.resize(tables.header.files);
    file.read(sizeof(OperationListHeader), tables.operations_of_task.data(), tables.header.tasks);
    file.read(sizeof(OperationListHeader) + 8 * std::uint64_t{tables.header.tasks}, tables.size_of_file.data(),
              tables.header.files);
    std::uint64_t remaining = tables.header.operations;
    for (const std::uint64_t count : tables.operations_of_task) {
        if (count > remaining) {
            file.fail("has more operations of tasks than in all");
        }
        remaining -= count;
    }
    std::uint64_t bytes = 0;
    for (const std::uint64_t size : tables.size_of_file) {
        if (size > largest_file || bytes + size > largest_file) {
            file.fail("has files of more than 4 EiB");
        }
        bytes += size;
    }
    if (remaining != 0 || bytes != tables.header.file_bytes) {
        file.fail("has tables that do not agree with its header: write it again with `sonde replay`");
    }
    return tables;
}

/// Checks the operations of one task in their order.
class OperationChecker {
 public:
    explicit OperationChecker(const OperationListTables& tables)
        : tables_(tables), file_of_handle_(tables.header.handles, no_file) {}

    /// The error in the next operation; empty if it is valid.
    std::string find_error(const ListedOperation& operation) {
        const auto kind = static_cast<std::size_t>(operation.kind);
        if (kind >= operation_kinds) {
            return "has an unknown kind " + std::to_string(kind);
        }
        if (operation.file >= tables_.header.files) {
            return "names file " + std::to_string(operation.file) + " of " + std::to_string(tables_.header.files);
        }
        if (operation.handle >= tables_.header.handles) {
            return "names handle " + std::to_string(operation.handle) + " of " + std::to_string(tables_.header.handles);
        }
        if (operation.reserved != 0 || operation.flags > (operation.kind == ReplayCall::open ? 15 : 0)) {
            return "has flags that this version does not know";
        }
        if (operation.think_ns > longest_think_ns) {
            return "has a think time of more than a day";
        }
        switch (operation.kind) {
            case ReplayCall::read:
            case ReplayCall::write:
                return find_transfer_error(operation);
            case ReplayCall::open:
                return find_open_error(operation);
            case ReplayCall::fsync:
                return find_handle_error(operation);
            case ReplayCall::close: {
                const std::string error = find_handle_error(operation);
                file_of_handle_[operation.handle] = no_file;
                return error;
            }
            case ReplayCall::stat:
            case ReplayCall::remove:
                break;
        }
        return {};
    }

    bool has_open_file() const {
        return std::any_of(file_of_handle_.begin(), file_of_handle_.end(),
                           [](std::uint64_t file) { return file != no_file; });
    }

 private:
    std::string find_handle_error(const ListedOperation& operation) const {
        return file_of_handle_[operation.handle] == operation.file
                   ? ""
                   : "is on handle " + std::to_string(operation.handle) + ", in which that file is not open";
    }
    std::string find_transfer_error(const ListedOperation& operation) const {
        if (operation.length > tables_.header.largest_transfer) {
            return "is longer than the header allows (" + std::to_string(tables_.header.largest_transfer) + " B)";
        }
        const std::uint64_t size = tables_.size_of_file[operation.file];
        if (operation.length > size || operation.offset > size - operation.length) {
            return "reaches beyond the size of its file (" + std::to_string(size) + " B)";
        }
        return find_handle_error(operation);
    }
    std::string find_open_error(const ListedOperation& operation) {
        if ((operation.flags & (open_reads | open_writes)) == 0) {
            return "opens a file for neither reading nor writing";
        }
        if (file_of_handle_[operation.handle] != no_file) {
            return "opens handle " + std::to_string(operation.handle) + ", which is open";
        }
        file_of_handle_[operation.handle] = operation.file;
        return {};
    }

    static constexpr std::uint64_t no_file = ~0ULL;
    const OperationListTables& tables_;
    std::vector<std::uint64_t> file_of_handle_;  ///< by handle: the file
};

void check_task(const OperationListFile& file, const OperationListTables& tables, std::uint32_t task,
                std::uint64_t first) {
    constexpr std::uint64_t batch = 1U << 15U;
    std::vector<ListedOperation> operations;
    OperationChecker check(tables);
    const std::uint64_t count = tables.operations_of_task[task];
    for (std::uint64_t done = 0; done < count; done += operations.size()) {
        operations.resize(std::min(batch, count - done));
        file.read(tables.first_operation_at() + sizeof(ListedOperation) * (first + done), operations.data(),
                  operations.size());
        for (std::size_t k = 0; k < operations.size(); ++k) {
            if (const std::string error = check.find_error(operations[k]); !error.empty()) {
                const auto kind = static_cast<std::size_t>(operations[k].kind);
                file.fail("is wrong: operation " + std::to_string(done + k) + " of task " + std::to_string(task) +
                          (kind < operation_kinds ? std::string(" (") + call_names[kind] + ") " : " ") + error);
            }
        }
    }
    if (check.has_open_file()) {
        file.fail("is wrong: task " + std::to_string(task) + " never closes a file that it opens");
    }
}

}  // namespace

OperationListHeader check_operation_list(const std::string& path) {
    const OperationListFile file(path);
    const OperationListTables tables = read_tables(file);
    std::uint64_t first = 0;
    for (std::uint32_t task = 0; task < tables.header.tasks; ++task) {
        check_task(file, tables, task, first);
        first += tables.operations_of_task[task];
    }
    return tables.header;
}

OperationListHeader read_operation_list_header(const std::string& path) {
    return read_tables(OperationListFile(path)).header;
}

TaskOperations read_task_operations(const std::string& path, int task) {
    const OperationListFile file(path);
    const OperationListTables tables = read_tables(file);
    if (static_cast<std::uint32_t>(task) >= tables.header.tasks) {
        file.fail("has no task " + std::to_string(task));
    }
    const auto count = tables.operations_of_task.begin() + task;
    const std::uint64_t first = std::accumulate(tables.operations_of_task.begin(), count, std::uint64_t{0});
    TaskOperations result;
    result.handles = tables.header.handles;
    result.operations.resize(*count);
    file.read(tables.first_operation_at() + sizeof(ListedOperation) * first, result.operations.data(), *count);
    for (const ListedOperation& operation : result.operations) {
        if (operation.kind == ReplayCall::read || operation.kind == ReplayCall::write) {
            result.bytes += operation.length;
        }
    }
    return result;
}

}  // namespace sonde::patterns
