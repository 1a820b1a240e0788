// SPDX-License-Identifier: Apache-2.0
#include "patterns/tree.hpp"

#include <charconv>
#include <vector>

namespace sonde::patterns {

TreeShape::TreeShape(const plan::Tree& tree)
    : top_(tree.top),
      copies_(static_cast<std::uint64_t>(tree.copies)),
      branching_(static_cast<std::uint64_t>(tree.branching)),
      directories_(plan::count_directories(tree)),
      item_directories_(tree.leaf_only ? plan::count_leaf_directories(tree) : directories_),
      first_item_directory_(directories_ - item_directories_),
      per_dir_(tree.items_per_dir) {
}

std::string TreeShape::directory_name(const std::string& branch, std::uint64_t directory) {
    return branch + "." + std::to_string(directory);
}

void TreeShape::append_path(std::string& path, const std::string& branch, std::uint64_t copy,
                            std::uint64_t directory) const {
    path += top_name(copy);
    path += '/';
    path += directory_name(branch, 0);
    std::vector<std::uint64_t> steps;
    for (; directory > 0; directory = parent(directory)) {
        steps.push_back(directory);
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
        path += '/';
        path += directory_name(branch, *step);
    }
}

std::optional<std::uint64_t> TreeShape::copy_of(std::string_view name) const {
    if (!name.starts_with(top_) || name.size() <= top_.size() || name[top_.size()] != '-') {
        return std::nullopt;
    }
    const std::optional<std::uint64_t> copy = parse_decimal(name.substr(top_.size() + 1));
    return copy && *copy < copies_ ? copy : std::nullopt;
}

std::string make_item_stem(const plan::Meta& meta, int task) {
    const bool files = meta.objects == plan::Objects::files;
    const std::string whose = files && meta.shared_single ? "shared" : std::to_string(task);
    return (files ? meta.names.file : meta.names.directory) + "." + whose + ".";
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || (text.size() > 1 && text[0] == '0')) {
        return std::nullopt;
    }
    return number;
}

}  // namespace sonde::patterns
