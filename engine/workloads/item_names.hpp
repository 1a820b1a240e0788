// SPDX-License-Identifier: Apache-2.0
// Names of items, made in batches outside the timed calls: only the digits of a name change from one to the next.
#pragma once

#include "backends/names.hpp"
#include "patterns/permutation.hpp"
#include "patterns/zipf.hpp"
#include "workloads/tree_job.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace sonde::workloads {

class ItemNames {
 public:
    static constexpr std::size_t batch_size = 64;

    /// `single_directory`: items are called by names relative to one directory only when all lie in the same (rename).
    ItemNames(const TreeJob& job, const plan::Meta& meta, backends::NameOperations& names, bool single_directory);
    ~ItemNames();
    ItemNames(const ItemNames&) = delete;
    ItemNames& operator=(const ItemNames&) = delete;

    /// Makes the names of the operations from `next` to at most `to`; `pass` makes random choices differ. How many were
    /// made (all in one directory where names are relative to it), or -errno of entering that directory.
    std::int64_t make_names(std::uint64_t next, std::uint64_t to, std::uint64_t pass);

    backends::Directory open_directory() const noexcept { return open_directory_; }
    const char* name(std::size_t k) const noexcept { return slots_[k].text; }
    std::uint64_t item(std::size_t k) const noexcept { return slots_[k].item; }
    const TreePart& part() const noexcept { return *part_; }
    /// The same name as a whole path, for messages.
    std::string path(std::size_t k) const;
    /// The directory that could not be entered.
    const std::string& failed_path() const noexcept { return failed_path_; }

 private:
    struct NameSlot {
        char* text = nullptr;
        std::size_t prefix = 0;  ///< bytes before the digits
        std::uint64_t directory = ~0ULL;
        const TreePart* part = nullptr;
        std::uint64_t item = 0;
    };

    std::uint64_t select_item(std::uint64_t index, std::uint64_t pass) const noexcept;
    std::uint64_t item_of_window(std::uint64_t index) const noexcept;
    void select_part(const TreePart& part, std::uint64_t first);
    std::int64_t open_item_directory(std::uint64_t copy, std::uint64_t directory);
    void write_name(NameSlot& slot, std::uint64_t item);

    const TreeJob& job_;
    const plan::Meta& meta_;
    backends::NameOperations& name_operations_;
    bool names_are_relative_;
    std::vector<char> name_memory_;
    std::vector<NameSlot> slots_;
    const TreePart* part_ = nullptr;
    std::uint64_t part_first_ = 0;
    std::optional<patterns::Permutation> permutation_;
    std::optional<patterns::Zipf> zipf_;
    backends::Directory open_directory_ = backends::current_directory;
    bool is_directory_open_ = false;
    std::uint64_t open_directory_number_ = ~0ULL;
    const TreePart* open_directory_part_ = nullptr;
    std::string scratch_, failed_path_;
};

}  // namespace sonde::workloads
