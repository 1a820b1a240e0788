// SPDX-License-Identifier: Apache-2.0
#include "workloads/item_names.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace sonde::workloads {
namespace {

/// Below this many items in each directory, entering one costs more than a longer path does.
constexpr std::uint64_t min_items_to_open_directory = 64;
constexpr std::size_t digits = 21;  // of a 64-bit number, and the zero byte

/// Bytes of the longest path of a directory, below the run directory.
std::size_t longest_path(const TreeJob& job) {
    std::size_t longest = 0;
    for (const TreePart& part : job.parts) {
        std::string path;
        job.shape.append_path(path, part.branch, job.shape.copies() - 1, job.shape.directories() - 1);
        longest = std::max(longest, path.size());
    }
    return longest;
}

std::size_t longest_stem(const TreeJob& job) {
    std::size_t longest = 0;
    for (const TreePart& part : job.parts) {
        longest = std::max(longest, part.item_stem.size());
    }
    return longest;
}

}  // namespace

ItemNames::ItemNames(const TreeJob& job, const plan::Meta& meta, backends::NameOperations& names, bool single_directory)
    : job_(job), meta_(meta), name_operations_(names), names_are_relative_(false), slots_(batch_size) {
    const bool single_holder = job.shape.copies() * job.shape.item_directories() == 1;
    const bool in_order =
        meta.order == plan::SelectOrder::creation && job.shape.items_per_dir() >= min_items_to_open_directory;
    names_are_relative_ =
        meta.path_kind == plan::PathKind::relative && (single_holder || (in_order && !single_directory));
    const std::size_t before = names_are_relative_ ? 0 : longest_path(job) + job.root.size() + 2;
    const std::size_t width = before + longest_stem(job) + digits;
    name_memory_.resize(width * batch_size);
    for (std::size_t k = 0; k < batch_size; ++k) {
        slots_[k].text = name_memory_.data() + k * width;
    }
}

ItemNames::~ItemNames() {
    if (is_directory_open_) {
        name_operations_.close_directory(open_directory_);
    }
}

void ItemNames::select_part(const TreePart& part, std::uint64_t first) {
    part_ = &part;
    part_first_ = first;
    const std::uint64_t items = std::max<std::uint64_t>(1, part.item_count);
    const std::uint64_t key = patterns::mix64(meta_.seed) + static_cast<std::uint64_t>(part.owner);
    if (meta_.order == plan::SelectOrder::permute || meta_.order == plan::SelectOrder::zipf) {
        permutation_.emplace(items, key);
    }
    if (meta_.order == plan::SelectOrder::zipf) {
        zipf_.emplace(items, meta_.zipf_exponent, key);
    }
}

std::uint64_t ItemNames::select_item(std::uint64_t index, std::uint64_t pass) const noexcept {
    switch (meta_.order) {
        case plan::SelectOrder::creation:
            return meta_.window ? item_of_window(index) : index;
        case plan::SelectOrder::permute:
            return (*permutation_)(index);
        case plan::SelectOrder::replace: {
            const std::uint64_t key = patterns::mix64(meta_.seed) + static_cast<std::uint64_t>(part_->owner);
            return patterns::scale_to_range(patterns::mix64(patterns::mix64(key + pass) + index), part_->item_count);
        }
        case plan::SelectOrder::zipf:
            // The favorites lie all over the tree, not in its first directory.
            return (*permutation_)((*zipf_)(pass * part_->item_count + index) - 1);
    }
    return index;
}

std::uint64_t ItemNames::item_of_window(std::uint64_t index) const noexcept {
    const plan::ItemWindow& window = *meta_.window;
    const std::uint64_t places = job_.shape.copies() * job_.shape.item_directories();
    const std::uint64_t holder = window.alternates_directories ? index % places : index / window.count;
    const std::uint64_t number = window.alternates_directories ? index / places : index % window.count;
    return holder * job_.shape.items_per_dir() + window.first + number;
}

std::int64_t ItemNames::open_item_directory(std::uint64_t copy, std::uint64_t directory) {
    const std::uint64_t wanted = copy * job_.shape.directories() + directory;
    if (is_directory_open_ && open_directory_number_ == wanted && open_directory_part_ == part_) {
        return 0;
    }
    if (is_directory_open_) {
        name_operations_.close_directory(open_directory_);
        is_directory_open_ = false;
    }
    scratch_ = job_.root;
    if (names_are_relative_) {
        scratch_ += '/';
        job_.shape.append_path(scratch_, part_->branch, copy, directory);
    }
    const backends::Directory opened = name_operations_.open_directory(job_.directory, job_.to_relative_path(scratch_));
    if (opened < 0) {
        failed_path_ = scratch_;
        return opened;
    }
    open_directory_ = opened;
    is_directory_open_ = true;
    open_directory_number_ = wanted;
    open_directory_part_ = part_;
    return 0;
}

void ItemNames::write_name(NameSlot& slot, std::uint64_t item) {
    const patterns::TreeShape::ItemPosition position = job_.shape.locate_item(item);
    const std::uint64_t directory =
        names_are_relative_ ? 0 : position.copy * job_.shape.directories() + position.directory;
    if (slot.part != part_ || slot.directory != directory) {
        scratch_.clear();
        if (!names_are_relative_) {
            scratch_ = meta_.path_kind == plan::PathKind::full ? job_.root + "/" : std::string();
            job_.shape.append_path(scratch_, part_->branch, position.copy, position.directory);
            scratch_ += '/';
        }
        scratch_ += part_->item_stem;
        std::memcpy(slot.text, scratch_.data(), scratch_.size());
        slot.prefix = scratch_.size();
        slot.part = part_;
        slot.directory = directory;
    }
    slot.item = item;
    *std::to_chars(slot.text + slot.prefix, slot.text + slot.prefix + digits, position.number).ptr = '\0';
}

std::int64_t ItemNames::make_names(std::uint64_t next, std::uint64_t to, std::uint64_t pass) {
    if (part_ == nullptr || next < part_first_ || next >= part_first_ + part_->item_count) {
        std::uint64_t first = 0;
        for (const TreePart& part : job_.parts) {
            if (next < first + part.item_count) {
                select_part(part, first);
                break;
            }
            first += part.item_count;
        }
    }
    const std::uint64_t index = next - part_first_;
    // `next` is an item of one of the parts. NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
    std::uint64_t count = std::min<std::uint64_t>({batch_size, to - next, part_->item_count - index});
    if (names_are_relative_) {
        const std::uint64_t per_dir = job_.shape.items_per_dir();
        if (meta_.order == plan::SelectOrder::creation) {
            count = std::min(count, per_dir - index % per_dir);
        }
        const patterns::TreeShape::ItemPosition position = job_.shape.locate_item(select_item(index, pass));
        if (const std::int64_t failed = open_item_directory(position.copy, position.directory); failed < 0) {
            return failed;
        }
    } else if (meta_.path_kind == plan::PathKind::relative && !is_directory_open_) {
        if (const std::int64_t failed = open_item_directory(0, 0); failed < 0) {
            return failed;
        }
        open_directory_part_ = nullptr;
    }
    for (std::uint64_t k = 0; k < count; ++k) {
        write_name(slots_[k], select_item(index + k, pass));
    }
    return static_cast<std::int64_t>(count);
}

std::string ItemNames::path(std::size_t k) const {
    std::string path = meta_.path_kind == plan::PathKind::full ? std::string() : job_.root + "/";
    if (names_are_relative_) {
        const patterns::TreeShape::ItemPosition position = job_.shape.locate_item(slots_[k].item);
        job_.shape.append_path(path, part_->branch, position.copy, position.directory);
        path += '/';
    }
    return path + slots_[k].text;
}

}  // namespace sonde::workloads
