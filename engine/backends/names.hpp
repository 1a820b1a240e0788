// SPDX-License-Identifier: Apache-2.0
// Operations of a channel on directories and the items in them. They are separate from data transfers, because not
// every storage that transfers data has directories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sonde::backends {

/// A directory that a channel has open; names are relative to it. `current_directory`: names are paths.
using Directory = int;
constexpr Directory current_directory = -100;  // AT_FDCWD

/// Options of make_file().
struct NewFileOptions {
    std::span<const std::byte> content;  ///< written after creation; empty: nothing is written
    bool fsync = false;                  ///< after writing
    bool exclusive = true;               ///< fails with EEXIST if the item exists
    bool use_mknod = false;              ///< mknod: never opened; content and fsync have no meaning
};

/// Options of stat_entry() and read_attributes().
struct StatOptions {
    bool follow_links = true;  ///< through a symbolic link, as stat(2) does
    bool use_statx = false;    ///< statx(2) with `fields` and `flags`
    std::uint32_t fields = 0, flags = 0;
};

enum class EntryKind : std::uint8_t { unknown, file, directory, link, other };

/// One name found in a directory.
struct DirectoryEntry {
    const char* name = nullptr;
    EntryKind kind = EntryKind::unknown;  ///< unknown: the listing does not state it
};

/// Attributes of an item; members that were not requested are zero.
struct EntryAttributes {
    EntryKind kind = EntryKind::unknown;
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;  ///< since 1970
};

/// Operations of one task on directories and items. Unless stated otherwise a call returns 0 or -errno. No call
/// allocates or prints. Symbolic links are not followed, except with StatOptions::follow_links.
class NameOperations {
 public:
    NameOperations() = default;
    NameOperations(const NameOperations&) = delete;
    NameOperations& operator=(const NameOperations&) = delete;
    virtual ~NameOperations() = default;

    /// Opens a directory for the calls below: its number, or -errno.
    virtual Directory open_directory(Directory parent, const char* name) noexcept = 0;
    virtual void close_directory(Directory directory) noexcept = 0;

    virtual int make_file(Directory parent, const char* name, const NewFileOptions& options) noexcept = 0;
    virtual int make_directory(Directory parent, const char* name) noexcept = 0;
    virtual int stat_entry(Directory parent, const char* name, const StatOptions& options) noexcept = 0;
    /// As stat_entry() with options.use_statx, and returns the attributes; the kind is always requested.
    virtual int read_attributes(Directory parent, const char* name, const StatOptions& options,
                                EntryAttributes& attributes) noexcept = 0;
    virtual int open_close(Directory parent, const char* name) noexcept = 0;
    /// Opens, reads from the start until `into` is full or the file ends, closes: bytes read or -errno.
    virtual std::int64_t read_file(Directory parent, const char* name, std::span<std::byte> into) noexcept = 0;
    virtual int rename(Directory parent, const char* name, const char* to) noexcept = 0;
    virtual int remove_file(Directory parent, const char* name) noexcept = 0;
    virtual int remove_directory(Directory parent, const char* name) noexcept = 0;

    /// Fills `buffer` with the next entries of an open directory: bytes used, 0 at its end, or -errno.
    virtual std::int64_t read_entries(Directory directory, std::span<std::byte> buffer) noexcept = 0;
    /// Decodes the entry at `position` of the bytes that read_entries() stored and advances `position`. False at their
    /// end.
    virtual bool next_entry(std::span<const std::byte> entries, std::size_t& position,
                            DirectoryEntry& entry) const noexcept = 0;

    /// Makes all data of the file system of an open directory durable (syncfs).
    virtual int sync_file_system(Directory directory) noexcept = 0;
};

/// Operations of the operating system: openat(2) and related calls. `direct`: data is written and read with O_DIRECT.
std::unique_ptr<NameOperations> make_posix_name_operations(bool direct = false);

}  // namespace sonde::backends
