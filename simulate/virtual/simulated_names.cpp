// SPDX-License-Identifier: Apache-2.0
#include "virtual/simulated_names.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sonde::simulate {

using backends::Directory;

std::string SimulatedNameOperations::join_path(Directory parent, const char* name) const {
    return parent == backends::current_directory || name[0] == '/'
               ? std::string(name)
               : entered_paths_[static_cast<std::size_t>(parent)] + "/" + name;
}

/// Number of entries of the directory that a path is in. The engine creates directories first.
std::uint64_t& SimulatedNameOperations::parent_entry_count(const std::string& path) {
    return directories_.entry_counts[path.substr(0, path.rfind('/'))];
}

void SimulatedNameOperations::call(ModelCallKind kind, FileId file, std::uint64_t length, bool direct) {
    ModelOperation operation;
    operation.kind = kind;
    operation.file = file;
    operation.length = length;
    operation.direct = direct;
    scheduler_.call(operation);
}

Directory SimulatedNameOperations::open_directory(Directory parent, const char* name) noexcept {
    std::string path = join_path(parent, name);
    if (path.ends_with("/.")) {
        path.resize(path.size() - 2);
    }
    entered_paths_.push_back(std::move(path));
    is_listed_.push_back(false);
    return static_cast<Directory>(entered_paths_.size()) - 1;
}

void SimulatedNameOperations::close_directory(Directory directory) noexcept {
    if (static_cast<std::size_t>(directory) + 1 == entered_paths_.size()) {
        entered_paths_.pop_back();
        is_listed_.pop_back();
    }
}

int SimulatedNameOperations::make_file(Directory parent, const char* name,
                                       const backends::NewFileOptions& options) noexcept {
    const std::string path = join_path(parent, name);
    Machine& machine = scheduler_.machine();
    const bool exists = machine.exists(path);
    if (exists && options.exclusive) {
        return -EEXIST;
    }
    const FileId file = machine.get_file(path);
    if (!exists) {
        ++parent_entry_count(path);
    }
    call(exists ? ModelCallKind::open : ModelCallKind::create, file, options.content.size());
    if (options.use_mknod) {
        return 0;
    }
    if (!options.content.empty()) {
        call(ModelCallKind::write, file, options.content.size(), is_direct_);
        if (options.fsync) {
            call(ModelCallKind::fsync, file, 0);
        }
    }
    call(ModelCallKind::close, file, 0);
    return 0;
}

int SimulatedNameOperations::make_directory(Directory parent, const char* name) noexcept {
    const std::string path = join_path(parent, name);
    if (directories_.entry_counts.contains(path)) {
        return -EEXIST;
    }
    ++parent_entry_count(path);
    directories_.entry_counts.emplace(path, 0);
    call(ModelCallKind::mkdir, scheduler_.machine().get_file(path), 0);
    return 0;
}

int SimulatedNameOperations::stat_entry(Directory parent, const char* name,
                                        const backends::StatOptions& /*options*/) noexcept {
    const std::string path = join_path(parent, name);
    Machine& machine = scheduler_.machine();
    if (!machine.exists(path) && !directories_.entry_counts.contains(path)) {
        return -ENOENT;
    }
    const FileId file = machine.get_file(path);
    call(ModelCallKind::stat, file, machine.file_size(file));
    return 0;
}

int SimulatedNameOperations::read_attributes(Directory parent, const char* name, const backends::StatOptions& options,
                                             backends::EntryAttributes& attributes) noexcept {
    const std::string path = join_path(parent, name);
    attributes.kind =
        directories_.entry_counts.contains(path) ? backends::EntryKind::directory : backends::EntryKind::file;
    if (scheduler_.machine().exists(path)) {
        attributes.bytes = scheduler_.machine().file_size(scheduler_.machine().get_file(path));
    }
    return stat_entry(parent, name, options);
}

int SimulatedNameOperations::open_close(Directory parent, const char* name) noexcept {
    const std::string path = join_path(parent, name);
    Machine& machine = scheduler_.machine();
    if (!machine.exists(path)) {
        return -ENOENT;
    }
    const FileId file = machine.get_file(path);
    call(ModelCallKind::open, file, machine.file_size(file));
    call(ModelCallKind::close, file, 0);
    return 0;
}

std::int64_t SimulatedNameOperations::read_file(Directory parent, const char* name,
                                                std::span<std::byte> into) noexcept {
    const std::string path = join_path(parent, name);
    Machine& machine = scheduler_.machine();
    if (!machine.exists(path)) {
        return -ENOENT;
    }
    const FileId file = machine.get_file(path);
    const std::uint64_t bytes = std::min<std::uint64_t>(into.size(), machine.file_size(file));
    call(ModelCallKind::open, file, machine.file_size(file));
    call(ModelCallKind::read, file, bytes, is_direct_);
    call(ModelCallKind::close, file, 0);
    return static_cast<std::int64_t>(bytes);
}

int SimulatedNameOperations::rename(Directory parent, const char* name, const char* to) noexcept {
    const std::string from = join_path(parent, name);
    Machine& machine = scheduler_.machine();
    if (!machine.exists(from)) {
        return -ENOENT;
    }
    call(ModelCallKind::rename, machine.get_file(from), 0);
    machine.rename_file(from, join_path(parent, to));
    return 0;
}

int SimulatedNameOperations::remove_file(Directory parent, const char* name) noexcept {
    const std::string path = join_path(parent, name);
    Machine& machine = scheduler_.machine();
    if (!machine.exists(path)) {
        return -ENOENT;
    }
    call(ModelCallKind::remove, machine.get_file(path), 0);
    machine.remove_file(path);
    --parent_entry_count(path);
    return 0;
}

int SimulatedNameOperations::remove_directory(Directory parent, const char* name) noexcept {
    const std::string path = join_path(parent, name);
    const auto entry =
        directories_.entry_counts.try_emplace(path, 0).first;  // the engine may have created it before the phase
    if (entry->second > 0) {
        return -ENOTEMPTY;
    }
    call(ModelCallKind::rmdir, scheduler_.machine().get_file(path), 0);
    scheduler_.machine().remove_file(path);
    directories_.entry_counts.erase(path);
    --parent_entry_count(path);
    return 0;
}

namespace {

/// The format in which read_entries() passes entries to next_entry(), instead of the entries that a kernel writes.
struct ListingPointer {
    const std::vector<DirectoryListings::ListedName>* entries = nullptr;
};

}  // namespace

std::int64_t SimulatedNameOperations::read_entries(Directory directory, std::span<std::byte> buffer) noexcept {
    const auto index = static_cast<std::size_t>(directory);
    if (is_listed_[index]) {
        return 0;
    }
    is_listed_[index] = true;
    if (!directories_.listings) {
        directories_.listings = std::make_unique<DirectoryListings>(scheduler_.machine(), directories_);
    }
    const ListingPointer listing{&directories_.listings->entries(entered_paths_[index])};
    call(ModelCallKind::readdir, scheduler_.machine().get_file(entered_paths_[index]), listing.entries->size());
    std::memcpy(buffer.data(), &listing, sizeof listing);
    return sizeof listing;
}

bool SimulatedNameOperations::next_entry(std::span<const std::byte> buffer, std::size_t& index,
                                         backends::DirectoryEntry& entry) const noexcept {
    if (buffer.empty()) {
        return false;  // the end of the directory
    }
    ListingPointer listing;
    std::memcpy(&listing, buffer.data(), sizeof listing);
    if (index >= listing.entries->size()) {
        return false;
    }
    const DirectoryListings::ListedName& entry_row = (*listing.entries)[index++];
    entry = {entry_row.name.c_str(),
             entry_row.is_directory ? backends::EntryKind::directory : backends::EntryKind::file};
    return true;
}

int SimulatedNameOperations::sync_file_system(Directory /*directory*/) noexcept {
    return 0;
}

}  // namespace sonde::simulate
