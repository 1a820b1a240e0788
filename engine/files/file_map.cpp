// SPDX-License-Identifier: Apache-2.0
#include "files/file_map.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string_view>

namespace sonde::files {

using plan::DirectoryMapping;
using plan::Mapping;

namespace {

std::string format_number(const char* format, std::uint64_t number) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), format, static_cast<unsigned long long>(number));
    return text.data();
}

/// The number that follows `mark` at the start of `text`, which moves on behind it.
std::optional<std::uint64_t> take_number(std::string_view& text, std::string_view mark) {
    std::uint64_t number = 0;
    if (!text.starts_with(mark)) {
        return std::nullopt;
    }
    text.remove_prefix(mark.size());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

}  // namespace

std::vector<std::string> list_root_directories(const std::string& root, const plan::Files& files) {
    std::vector<std::string> all{root};
    const std::string name = root.substr(root.rfind('/') + 1);  // all of it where there is none
    for (const std::string& directory : files.across) {
        all.push_back(directory + (directory.back() == '/' ? "" : "/") + name);
    }
    return all;
}

FileMap::FileMap(std::string root, const plan::Files& files, const TaskMap& tasks)
    : root_(std::move(root)), roots_(list_root_directories(root_, files)), files_(files), tasks_(&tasks) {
}

std::uint64_t FileMap::file_number(int task, int k) const {
    switch (files_.mapping) {
        case Mapping::shared:
            return static_cast<std::uint64_t>(k);
        case Mapping::per_task:
            return static_cast<std::uint64_t>(task);
        case Mapping::per_node:
            return static_cast<std::uint64_t>(tasks_->node_of(task));
        case Mapping::per_group:
            return static_cast<std::uint64_t>(task / files_.group_size);
        case Mapping::many:
            return static_cast<std::uint64_t>(task) * static_cast<std::uint64_t>(files_.count) +
                   static_cast<std::uint64_t>(k);
    }
    return 0;
}

int FileMap::first_task_on(int node) const {
    const auto& nodes = tasks_->node_of_process;
    return tasks_->threads_per_process * static_cast<int>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
}

std::string FileMap::folder(int task) const {
    switch (files_.directories) {
        case DirectoryMapping::one:
            break;
        case DirectoryMapping::per_task:
            return format_number("t%08llu", static_cast<std::uint64_t>(task));
        case DirectoryMapping::per_node:
            return format_number("n%06llu", static_cast<std::uint64_t>(tasks_->node_of(task)));
    }
    return {};
}

std::string FileMap::get_file_folder(int task) const {
    // Of the first task that shares the file: all must find the same one.
    switch (files_.mapping) {
        case Mapping::shared:
            return {};
        case Mapping::per_node:
            return folder(first_task_on(tasks_->node_of(task)));
        case Mapping::per_group:
            return folder(task / files_.group_size * files_.group_size);
        case Mapping::per_task:
        case Mapping::many:
            break;
    }
    return folder(task);
}

std::string FileMap::file_name(int task, int k) const {
    const std::uint64_t number = file_number(task, k);
    switch (files_.mapping) {
        case Mapping::shared:
            return files_.count == 1 ? files_.name : files_.name + format_number(".%08llu", number);
        case Mapping::per_task:
            return files_.name + format_number(".t%08llu", number);
        case Mapping::per_node:
            return files_.name + format_number(".n%06llu", number);
        case Mapping::per_group:
            return files_.name + format_number(".g%08llu", number);
        case Mapping::many:
            return files_.name + format_number(".t%08llu", static_cast<std::uint64_t>(task)) +
                   format_number(".%08llu", static_cast<std::uint64_t>(k));
    }
    return files_.name;
}

/// As IOR names them: directory/task/name.00000000.suffix; the file of a group has its number.
std::string FileMap::make_listed_path(int task) const {
    const bool is_numbered = files_.mapping != Mapping::shared;
    const std::uint64_t number = file_number(task, 0);
    std::string path = files_.paths[is_numbered ? number % files_.paths.size() : 0];
    if (files_.directories == DirectoryMapping::per_task) {
        const std::size_t slash = path.rfind('/');
        const std::size_t name_begin = slash == std::string::npos ? 0 : slash + 1;
        path.insert(name_begin, std::to_string(task) + "/");
    }
    return path + (is_numbered ? format_number(".%08llu", number) : std::string()) + files_.suffix;
}

const std::string& FileMap::get_root_directory(int task) const {
    const int turn = files_.mapping == Mapping::per_group ? task / files_.group_size : task;
    return roots_[static_cast<std::size_t>(turn) % roots_.size()];
}

std::string FileMap::path(int task, int k) const {
    if (files_.is_device()) {
        return files_.device;
    }
    if (files_.in_place()) {
        return make_listed_path(task);
    }
    const std::string folder = get_file_folder(task);
    return get_root_directory(task) + "/" + (folder.empty() ? "" : folder + "/") + file_name(task, k);
}

bool FileMap::contains_file(const std::string& folder, const std::string& name) const {
    if (!name.starts_with(files_.name)) {
        return false;
    }
    // The numbers in the name say which task and file it would be; then the name must be exactly theirs.
    std::string_view remainder = std::string_view(name).substr(files_.name.size());
    const auto all = static_cast<std::uint64_t>(tasks_->tasks());
    std::uint64_t task = 0;
    std::uint64_t k = 0;
    switch (files_.mapping) {
        case Mapping::shared:
            k = files_.count == 1 ? 0 : take_number(remainder, ".").value_or(static_cast<std::uint64_t>(files_.count));
            break;
        case Mapping::per_task:
            task = take_number(remainder, ".t").value_or(all);
            break;
        case Mapping::per_node: {
            const std::uint64_t node = take_number(remainder, ".n").value_or(all);
            task = node < all ? static_cast<std::uint64_t>(first_task_on(static_cast<int>(node))) : all;
            break;
        }
        case Mapping::per_group: {
            const std::uint64_t group = take_number(remainder, ".g").value_or(all);
            task = group < all ? group * static_cast<std::uint64_t>(files_.group_size) : all;
            break;
        }
        case Mapping::many:
            task = take_number(remainder, ".t").value_or(all);
            k = take_number(remainder, ".").value_or(static_cast<std::uint64_t>(files_.count));
            break;
    }
    return task < all && k < static_cast<std::uint64_t>(files_per_task()) &&
           file_name(static_cast<int>(task), static_cast<int>(k)) == name &&
           get_file_folder(static_cast<int>(task)) == folder;
}

bool FileMap::contains_folder(const std::string& name) const {
    if (files_.directories == DirectoryMapping::one) {
        return false;
    }
    std::string_view remainder = name;
    const auto all = static_cast<std::uint64_t>(tasks_->tasks());
    const bool by_task = files_.directories == DirectoryMapping::per_task;
    const std::uint64_t number = take_number(remainder, by_task ? "t" : "n").value_or(all);
    if (number >= all) {
        return false;
    }
    const int task = by_task ? static_cast<int>(number) : first_task_on(static_cast<int>(number));
    return task < tasks_->tasks() && folder(task) == name;
}

patterns::FileShare FileMap::share_of_task(int task) const {
    const int all = tasks_->tasks();
    switch (files_.mapping) {
        case Mapping::shared:
            return {static_cast<std::uint64_t>(all), static_cast<std::uint64_t>(task)};
        case Mapping::per_node:
            return {static_cast<std::uint64_t>(tasks_->tasks_on(tasks_->node_of(task))),
                    static_cast<std::uint64_t>(tasks_->index_on_node(task))};
        case Mapping::per_group: {
            const int first = task / files_.group_size * files_.group_size;
            return {static_cast<std::uint64_t>(std::min(files_.group_size, all - first)),
                    static_cast<std::uint64_t>(task - first)};
        }
        case Mapping::per_task:
        case Mapping::many:
            break;
    }
    return {1, 0};
}

bool FileMap::is_first_task_of_file(int task) const {
    return share_of_task(task).index == 0;
}

std::uint64_t FileMap::distinct_files() const {
    const auto tasks = static_cast<std::uint64_t>(tasks_->tasks());
    switch (files_.mapping) {
        case Mapping::shared:
            return static_cast<std::uint64_t>(files_.count);
        case Mapping::per_task:
            return tasks;
        case Mapping::per_node:
            return static_cast<std::uint64_t>(tasks_->nodes());
        case Mapping::per_group:
            return (tasks + static_cast<std::uint64_t>(files_.group_size) - 1) /
                   static_cast<std::uint64_t>(files_.group_size);
        case Mapping::many:
            return tasks * static_cast<std::uint64_t>(files_.count);
    }
    return 0;
}

std::vector<std::string> FileMap::directories() const {
    std::vector<std::string> list(roots_.begin() + 1, roots_.end());
    if (files_.directories == DirectoryMapping::one) {
        return list;
    }
    for (int task = 0; task < tasks_->tasks(); ++task) {
        if (files_.in_place()) {
            const std::string file = make_listed_path(task);
            list.push_back(file.substr(0, file.rfind('/')));
        } else if (files_.directories == DirectoryMapping::per_task || tasks_->index_on_node(task) == 0) {
            list.push_back(get_root_directory(task) + "/" + folder(task));
        }
    }
    return list;
}

}  // namespace sonde::files
