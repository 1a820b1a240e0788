// SPDX-License-Identifier: Apache-2.0
// The files of the machine: names, sizes, layouts, and their positions on the drives.
#pragma once

#include "model/client_table.hpp"
#include "model/operation.hpp"
#include "model/timeline.hpp"
#include "system/system_model.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sonde::simulate {

struct FileState {
    ModelLayout layout;
    std::uint64_t size = 0;
    std::uint64_t space_bytes = 0;            ///< size for which targets have reserved space
    std::uint64_t allocated_bytes = 0;        ///< blocks from the start of the file, in bytes
    double drive_position = 0;                ///< 0 outer edge, 1 inner edge
    std::uint32_t fragments = 1;              ///< of 1 MiB
    std::uint32_t writer_count = 0;           ///< streams that wrote to the file and have it open
    bool is_cached_by_server = false;         ///< its metadata is in the memory of the metadata server
    std::vector<std::uint32_t> lock_holders;  ///< by lock unit: client + 1; 0: no holder
    std::unordered_map<std::uint32_t, std::uint32_t> pending_write_backs;  ///< client -> requests in flight
    std::vector<std::uint32_t> waiting_fsyncs;                             ///< calls

    /// Allocates blocks up to `end`. Returns whether the file lacked them.
    bool extend_allocation(std::uint64_t end) noexcept;
};

/// Storage location of an offset of a file.
struct StripeLocation {
    std::uint32_t target = 0;
    std::uint64_t object_offset = 0;
    std::uint64_t bytes_to_border = 0;  ///< until the end of the stripe or of the largest request
};

class FileTable {
 public:
    FileTable(const SystemModel& site, Timeline& timeline);

    FileState& operator[](FileId id) noexcept { return files_[id]; }
    const FileState& operator[](FileId id) const noexcept { return files_[id]; }
    /// The file of that name, created with the default layout if it does not exist.
    FileId get_or_create(std::string_view path);
    bool exists(std::string_view path) const;
    const std::unordered_map<std::string, FileId>& files_by_name() const { return files_by_name_; }
    void resize(FileId id, std::uint64_t size, ClientTable& clients);
    void remove(std::string_view path, ClientTable& clients);
    void rename(std::string_view from, std::string_view to, ClientTable& clients);
    /// `rpc_size`: the largest request.
    StripeLocation locate_stripe(const FileState& file, std::uint64_t offset, std::uint64_t rpc_size) const;
    /// Reserves space on the targets for a file of that size. False when one of them is full. Targets without a
    /// described capacity are never full.
    bool reserve_space(FileId id, std::uint64_t size);
    /// Bytes of all files on each target.
    std::vector<std::uint64_t> stored_bytes() const;
    void drop_server_caches();

    /// Fill level of the file system, 0..1: that of an active fault, else that of the site.
    double fill_level() const { return fault_fill_level_ >= 0 ? fault_fill_level_ : site_.file_system.used_share; }
    void set_fault_fill_level(double level) { fault_fill_level_ = level; }  ///< < 0: no fault

 private:
    FileId create();
    void choose_drive_position(FileState& file);
    void release_space(FileState& file, std::uint64_t size);
    std::uint64_t target_bytes(const ModelLayout& layout, std::uint32_t stripe_target, std::uint64_t size) const;

    const SystemModel& site_;
    Timeline& timeline_;
    std::vector<FileState> files_;
    std::vector<FileId> free_files_;
    std::unordered_map<std::string, FileId> files_by_name_;
    std::uint64_t next_start_target_ = 0;  ///< of the layout of the next file
    double fault_fill_level_ = -1;
    bool has_capacity_ = false;
    std::vector<std::uint64_t> reserved_space_;  ///< by target
};

}  // namespace sonde::simulate
