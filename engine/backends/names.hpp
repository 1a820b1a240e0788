// SPDX-License-Identifier: Apache-2.0
// The part of a channel that works on names: directories and the items in them. Kept apart from the moving of bytes,
// because not every storage that moves bytes has names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sonde::backends {

/// A directory that a channel has open; names are relative to it. `anywhere` = names are whole paths.
using Directory = int;
constexpr Directory current_directory = -100;  // AT_FDCWD

/// How an item is made.
struct NewFileOptions {
    std::span<const std::byte> content;  ///< written at once; empty: nothing is
    bool fsync = false;                  ///< after writing
    bool exclusive = true;               ///< fails with EEXIST when it is there already
    bool use_mknod = false;              ///< mknod: never opened; content and fsync have no meaning
};

/// How the attributes of an item are read.
struct StatOptions {
    bool follow_links = true;  ///< through a symbolic link, as stat(2) does
    bool use_statx = false;    ///< statx(2) with `fields` and `flags`
    std::uint32_t fields = 0, flags = 0;
};

enum class EntryKind : std::uint8_t { unknown, file, directory, link, other };

/// One name found in a directory.
struct DirectoryEntry {
    const char* name = nullptr;
    EntryKind kind = EntryKind::unknown;  ///< unknown: only a look tells
};

/// What a look found out; members that were not asked for are zero.
struct EntryAttributes {
    EntryKind kind = EntryKind::unknown;
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;  ///< since 1970
};

/// One task's access to names. Every call returns 0 (or what it says) or -errno, and none allocates or prints. Names
/// are never followed when they are symbolic links, except by stat_entry() when asked.
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
    /// As stat_entry() with options.use_statx, and says what it saw; the kind is always asked for.
    virtual int read_attributes(Directory parent, const char* name, const StatOptions& options,
                                EntryAttributes& attributes) noexcept = 0;
    virtual int open_close(Directory parent, const char* name) noexcept = 0;
    /// Opens, reads from the start until `into` is full or the file ends, closes: bytes read or -errno.
    virtual std::int64_t read_file(Directory parent, const char* name, std::span<std::byte> into) noexcept = 0;
    virtual int rename(Directory parent, const char* name, const char* to) noexcept = 0;
    virtual int remove_file(Directory parent, const char* name) noexcept = 0;
    virtual int remove_directory(Directory parent, const char* name) noexcept = 0;

    /// Fills `buffer` with the next entries of an entered directory: bytes used, 0 at its end, or -errno.
    virtual std::int64_t read_entries(Directory directory, std::span<std::byte> buffer) noexcept = 0;
    /// Takes the entry at `*place` of what read_entries() put there and moves on; false when there is none left.
    virtual bool next_entry(std::span<const std::byte> entries, std::size_t& position,
                            DirectoryEntry& entry) const noexcept = 0;

    /// Makes everything durable on the file system of an entered directory.
    virtual int sync_file_system(Directory directory) noexcept = 0;
};

/// Names of the operating system: openat(2) and its family. `direct`: bytes are written and read with O_DIRECT.
std::unique_ptr<NameOperations> make_posix_name_operations(bool direct = false);

}  // namespace sonde::backends
