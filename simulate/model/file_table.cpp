// SPDX-License-Identifier: Apache-2.0
#include "model/file_table.hpp"

#include <algorithm>

namespace sonde::simulate {

bool FileState::extend_allocation(std::uint64_t end) noexcept {
    const bool is_longer = end > allocated_bytes;
    allocated_bytes = std::max(allocated_bytes, end);
    return is_longer;
}

FileTable::FileTable(const SystemModel& site, Timeline& timeline)
    : site_(site),
      timeline_(timeline),
      next_start_target_(timeline.random.integer_below(site.targets.size())),
      has_capacity_(std::any_of(site.targets.begin(), site.targets.end(),
                                [](const TargetDescription& target) { return target.capacity_bytes > 0; })),
      reserved_space_(site.targets.size(), 0) {
}

FileId FileTable::get_or_create(std::string_view path) {
    const auto [entry, is_new] = files_by_name_.try_emplace(std::string(path), 0);
    if (is_new) {
        entry->second = create();
    }
    return entry->second;
}

bool FileTable::exists(std::string_view path) const {
    return files_by_name_.contains(std::string(path));
}

void FileTable::resize(FileId id, std::uint64_t size, ClientTable& clients) {
    FileState& file = files_[id];
    if (size < file.size) {
        clients.remove_cached_file(id);
        file.lock_holders.clear();
    }
    release_space(file, size);
    file.size = size;
    file.allocated_bytes = std::min(file.allocated_bytes, size);
    if (size == 0) {
        choose_drive_position(file);
    }
}

void FileTable::remove(std::string_view path, ClientTable& clients) {
    const auto entry = files_by_name_.find(std::string(path));
    if (entry == files_by_name_.end()) {
        return;
    }
    FileState& file = files_[entry->second];
    release_space(file, 0);
    clients.remove_cached_name(entry->second);
    if (file.size > 0) {
        clients.remove_cached_file(entry->second);
    }
    // Write-backs in flight still refer to the file.
    if (file.pending_write_backs.empty() && file.waiting_fsyncs.empty()) {
        free_files_.push_back(entry->second);
    }
    files_by_name_.erase(entry);
}

void FileTable::rename(std::string_view from, std::string_view to, ClientTable& clients) {
    const auto entry = files_by_name_.find(std::string(from));
    if (entry != files_by_name_.end() && from != to) {
        const FileId id = entry->second;
        remove(to, clients);
        clients.remove_cached_name(id);
        files_by_name_.erase(std::string(from));
        files_by_name_.emplace(std::string(to), id);
    }
}

StripeLocation FileTable::locate_stripe(const FileState& file, std::uint64_t offset, std::uint64_t rpc_size) const {
    const ModelLayout& layout = file.layout;
    const std::uint64_t stripe = offset / layout.size;
    const std::uint64_t stripe_offset = offset % layout.size;
    StripeLocation location;
    location.target = static_cast<std::uint32_t>((layout.start + stripe % layout.count) % site_.targets.size());
    location.object_offset = stripe / layout.count * layout.size + stripe_offset;
    location.bytes_to_border = std::min(layout.size - stripe_offset, rpc_size - location.object_offset % rpc_size);
    return location;
}

/// Bytes of a file of that size on the target with its `stripe_target`-th stripe.
std::uint64_t FileTable::target_bytes(const ModelLayout& layout, std::uint32_t stripe_target,
                                      std::uint64_t size) const {
    const std::uint64_t stripes = size / layout.size;
    const std::uint64_t full_stripes = stripes / layout.count + (stripe_target < stripes % layout.count ? 1 : 0);
    return full_stripes * layout.size + (stripe_target == stripes % layout.count ? size % layout.size : 0);
}

bool FileTable::reserve_space(FileId id, std::uint64_t size) {
    FileState& file = files_[id];
    if (!has_capacity_ || size <= file.space_bytes) {
        return true;
    }
    const ModelLayout& layout = file.layout;
    const std::uint64_t first = file.space_bytes / layout.size, last = (size - 1) / layout.size;
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(last - first + 1, layout.count));
    const auto each_target = [&](auto action) {
        for (std::uint32_t i = 0; i < count; ++i) {
            const auto k = static_cast<std::uint32_t>((first + i) % layout.count);
            const std::size_t target = (layout.start + k) % site_.targets.size();
            action(target, target_bytes(layout, k, size) - target_bytes(layout, k, file.space_bytes));
        }
    };
    bool has_room = true;
    each_target([&](std::size_t target, std::uint64_t bytes) {
        const std::uint64_t capacity = site_.targets[target].capacity_bytes;
        const double usable = static_cast<double>(capacity) * (1 - fill_level());
        has_room = has_room && (capacity == 0 || static_cast<double>(reserved_space_[target] + bytes) <= usable);
    });
    if (has_room) {
        each_target([&](std::size_t target, std::uint64_t bytes) { reserved_space_[target] += bytes; });
        file.space_bytes = size;
    }
    return has_room;
}

/// Releases the space of a file beyond that size.
void FileTable::release_space(FileState& file, std::uint64_t size) {
    for (std::uint32_t k = 0; size < file.space_bytes && k < file.layout.count; ++k) {
        reserved_space_[(file.layout.start + k) % site_.targets.size()] -=
            target_bytes(file.layout, k, file.space_bytes) - target_bytes(file.layout, k, size);
    }
    file.space_bytes = std::min(file.space_bytes, size);
}

std::vector<std::uint64_t> FileTable::stored_bytes() const {
    std::vector<std::uint64_t> stored(site_.targets.size(), 0);
    for (const auto& [name, id] : files_by_name_) {
        const FileState& file = files_[id];
        for (std::uint32_t k = 0; file.size > 0 && k < file.layout.count; ++k) {
            stored[(file.layout.start + k) % stored.size()] += target_bytes(file.layout, k, file.size);
        }
    }
    return stored;
}

void FileTable::drop_server_caches() {
    for (FileState& file : files_) {
        file.is_cached_by_server = false;
    }
}

/// Creates a file with the default layout. Start targets follow each other round robin, so that neither one target nor
/// one server gets a convoy.
FileId FileTable::create() {
    FileId id = 0;
    if (free_files_.empty()) {
        id = static_cast<FileId>(files_.size());
        files_.emplace_back();
    } else {
        id = free_files_.back();
        free_files_.pop_back();
        files_[id] = FileState{};
    }
    FileState& file = files_[id];
    file.layout.size = std::max<std::uint64_t>(site_.file_system.stripe_size, page_bytes);
    const std::int64_t count = site_.file_system.stripe_count;
    const auto target_count = static_cast<std::int64_t>(site_.targets.size());
    file.layout.count = static_cast<std::uint32_t>(count < 1 || count > target_count ? target_count : count);
    file.layout.start = site_.file_system.stripe_start.value_or(
        static_cast<std::uint32_t>(next_start_target_++ % site_.targets.size()));
    choose_drive_position(file);
    return id;
}

/// Chooses the position of a file on the drives and its fragments. A file system with fill level u has its free space
/// uniformly up to 2 u of the way to the inner edge; above u = 0.75 files are fragmented.
void FileTable::choose_drive_position(FileState& file) {
    const double used = fill_level();
    file.drive_position = used <= 0 ? 0 : timeline_.random.uniform() * std::min(1.0, 2 * used);
    file.fragments = used > 0.75 ? 1 + static_cast<std::uint32_t>((used - 0.75) * 4 * 15) : 1;
}

}  // namespace sonde::simulate
