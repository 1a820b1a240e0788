// SPDX-License-Identifier: Apache-2.0
// The engine's operations on names, performed by the metadata servers of a simulated machine.
#pragma once

#include "backends/names.hpp"
#include "virtual/simulated_directories.hpp"
#include "virtual/task_scheduler.hpp"

#include <string>
#include <vector>

namespace sonde::simulate {

class SimulatedNameOperations final : public backends::NameOperations {
 public:
    SimulatedNameOperations(TaskScheduler& scheduler, SimulatedDirectories& directories, bool is_direct)
        : scheduler_(scheduler), directories_(directories), is_direct_(is_direct) {}

    backends::Directory open_directory(backends::Directory parent, const char* name) noexcept override;
    void close_directory(backends::Directory directory) noexcept override;
    int make_file(backends::Directory parent, const char* name,
                  const backends::NewFileOptions& options) noexcept override;
    int make_directory(backends::Directory parent, const char* name) noexcept override;
    int stat_entry(backends::Directory parent, const char* name,
                   const backends::StatOptions& options) noexcept override;
    int read_attributes(backends::Directory parent, const char* name, const backends::StatOptions& options,
                        backends::EntryAttributes& attributes) noexcept override;
    int open_close(backends::Directory parent, const char* name) noexcept override;
    std::int64_t read_file(backends::Directory parent, const char* name, std::span<std::byte> into) noexcept override;
    int rename(backends::Directory parent, const char* name, const char* to) noexcept override;
    int remove_file(backends::Directory parent, const char* name) noexcept override;
    int remove_directory(backends::Directory parent, const char* name) noexcept override;
    /// Writes a pointer to the complete listing into `buffer`, from which next_entry() reads. The second call returns
    /// 0.
    std::int64_t read_entries(backends::Directory directory, std::span<std::byte> buffer) noexcept override;
    bool next_entry(std::span<const std::byte> buffer, std::size_t& index,
                    backends::DirectoryEntry& entry) const noexcept override;
    int sync_file_system(backends::Directory directory) noexcept override;

 private:
    std::string join_path(backends::Directory parent, const char* name) const;
    std::uint64_t& parent_entry_count(const std::string& path);
    void call(ModelCallKind kind, FileId file, std::uint64_t length, bool direct = false);

    TaskScheduler& scheduler_;
    SimulatedDirectories& directories_;
    bool is_direct_;
    std::vector<std::string> entered_paths_;  ///< of open directories, by number
    std::vector<bool> is_listed_;             ///< read_entries() has returned the entries of the directory
};

}  // namespace sonde::simulate
