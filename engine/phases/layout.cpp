// SPDX-License-Identifier: Apache-2.0
#include "phases/layout.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace sonde::phases {

using plan::Directories;
using plan::Mapping;

namespace {

std::string numbered(const char* format, std::uint64_t number) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), format, static_cast<unsigned long long>(number));
    return text.data();
}

}  // namespace

int TaskMap::nodes() const {
    return node_of_process.empty() ? 1 : 1 + *std::max_element(node_of_process.begin(), node_of_process.end());
}

int TaskMap::tasks_on(int node) const {
    return threads * static_cast<int>(std::count(node_of_process.begin(), node_of_process.end(), node));
}

int TaskMap::index_on_node(int task) const {
    const auto process = static_cast<std::ptrdiff_t>(task / threads);
    const int node = node_of(task);
    return threads * static_cast<int>(std::count(node_of_process.begin(), node_of_process.begin() + process, node)) +
           task % threads;
}

Layout::Layout(std::string root, const plan::Files& files, const TaskMap& tasks)
    : root_(std::move(root)), files_(files), tasks_(&tasks) {
}

std::uint64_t Layout::file_number(int task, int k) const {
    switch (files_.mapping) {
        case Mapping::shared:
            return 0;
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

std::string Layout::directory(int task) const {
    switch (files_.directories) {
        case Directories::one:
            return root_;
        case Directories::per_task:
            return root_ + numbered("/t%08llu", static_cast<std::uint64_t>(task));
        case Directories::per_node:
            return root_ + numbered("/n%06llu", static_cast<std::uint64_t>(tasks_->node_of(task)));
    }
    return root_;
}

std::string Layout::path(int task, int k) const {
    const std::uint64_t number = file_number(task, k);
    switch (files_.mapping) {
        case Mapping::shared:
            return root_ + "/" + files_.name;
        case Mapping::per_task:
            return directory(task) + "/" + files_.name + numbered(".t%08llu", number);
        case Mapping::per_node:
            return directory(task) + "/" + files_.name + numbered(".n%06llu", number);
        case Mapping::per_group:
            // The directory of the group's first task: all its tasks must find the same file.
            return directory(task / files_.group_size * files_.group_size) + "/" + files_.name +
                   numbered(".g%08llu", number);
        case Mapping::many:
            return directory(task) + "/" + files_.name + numbered(".t%08llu", static_cast<std::uint64_t>(task)) +
                   numbered(".%08llu", static_cast<std::uint64_t>(k));
    }
    return root_;
}

patterns::Share Layout::share(int task) const {
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

bool Layout::first_of_file(int task) const {
    return share(task).index == 0;
}

std::uint64_t Layout::distinct_files() const {
    const auto tasks = static_cast<std::uint64_t>(tasks_->tasks());
    switch (files_.mapping) {
        case Mapping::shared:
            return 1;
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

std::vector<std::string> Layout::directories() const {
    std::vector<std::string> list;
    if (files_.directories == Directories::one) {
        return list;
    }
    for (int task = 0; task < tasks_->tasks(); ++task) {
        if (files_.directories == Directories::per_task || tasks_->index_on_node(task) == 0) {
            list.push_back(directory(task));
        }
    }
    return list;
}

int shifted(const plan::Shift& shift, int task, const TaskMap& tasks) {
    const auto all = static_cast<std::int64_t>(tasks.tasks());
    const auto wrap = [all](std::int64_t n) { return static_cast<int>(((n % all) + all) % all); };
    switch (shift.by) {
        case plan::ShiftBy::none:
            return task;
        case plan::ShiftBy::tasks:
            return wrap(static_cast<std::int64_t>(task) + shift.n);
        case plan::ShiftBy::nodes:
            return wrap(task + static_cast<std::int64_t>(shift.n) * tasks.tasks_on(0));
        case plan::ShiftBy::random:
            return static_cast<int>(
                patterns::scale(patterns::mix64(patterns::mix64(shift.seed) + static_cast<std::uint64_t>(task)),
                                static_cast<std::uint64_t>(all)));
        case plan::ShiftBy::permute:
            return static_cast<int>(
                patterns::Permutation(static_cast<std::uint64_t>(all), shift.seed)(static_cast<std::uint64_t>(task)));
    }
    return task;
}

}  // namespace sonde::phases
