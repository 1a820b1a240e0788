// SPDX-License-Identifier: Apache-2.0
// Files of a plan: names that never clash, and who shares what.
#include "files/file_map.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <map>
#include <set>

using sonde::files::FileMap;
using sonde::files::shift_task;
using sonde::files::TaskMap;
using sonde::patterns::FileShare;
using sonde::plan::DirectoryMapping;
using sonde::plan::Files;
using sonde::plan::Mapping;
using sonde::plan::Shift;
using sonde::plan::ShiftBy;

namespace {

// Three nodes with 2, 1 and 2 processes of 2 threads, the processes assigned round robin.
const TaskMap uneven{2, {0, 1, 2, 0, 2}};

Files files_like(Mapping mapping) {
    Files files;
    files.mapping = mapping;
    files.group_size = mapping == Mapping::per_group ? 3 : 0;
    files.count = mapping == Mapping::many ? 4 : 1;
    return files;
}

}  // namespace

TEST_CASE("tasks are counted by node") {
    CHECK(uneven.tasks() == 10);
    CHECK(uneven.nodes() == 3);
    CHECK(uneven.tasks_on(0) == 4);
    CHECK(uneven.tasks_on(1) == 2);
    CHECK(uneven.node_of(5) == 2);
    CHECK(uneven.node_of(7) == 0);
    CHECK(uneven.index_on_node(0) == 0);
    CHECK(uneven.index_on_node(6) == 2);
    CHECK(uneven.index_on_node(7) == 3);
    CHECK(uneven.index_on_node(9) == 3);
}

TEST_CASE("paths and file numbers map one to one") {
    for (const Mapping mapping :
         {Mapping::shared, Mapping::per_task, Mapping::per_node, Mapping::per_group, Mapping::many}) {
        for (const DirectoryMapping directories :
             {DirectoryMapping::one, DirectoryMapping::per_task, DirectoryMapping::per_node}) {
            Files files = files_like(mapping);
            files.directories = directories;
            if (mapping == Mapping::shared && directories == DirectoryMapping::per_task) {
                continue;  // refused by the plan's rules
            }
            const FileMap map("/t", files, uneven);
            std::map<std::string, std::uint64_t> number_of;
            std::set<std::uint64_t> numbers;
            for (int task = 0; task < uneven.tasks(); ++task) {
                for (int k = 0; k < map.files_per_task(); ++k) {
                    const auto [place, fresh] = number_of.emplace(map.path(task, k), map.file_number(task, k));
                    CHECK(place->second == map.file_number(task, k));
                    numbers.insert(map.file_number(task, k));
                }
            }
            CAPTURE(static_cast<int>(mapping));
            CAPTURE(static_cast<int>(directories));
            CHECK(number_of.size() == map.distinct_files());
            CHECK(numbers.size() == map.distinct_files());
        }
    }
}

TEST_CASE("sharers of a file are numbered without gap") {
    for (const Mapping mapping :
         {Mapping::shared, Mapping::per_task, Mapping::per_node, Mapping::per_group, Mapping::many}) {
        const FileMap map("/t", files_like(mapping), uneven);
        std::map<std::string, std::set<std::uint64_t>> indices;
        std::map<std::string, std::uint64_t> sharers;
        std::map<std::string, int> firsts;
        for (int task = 0; task < uneven.tasks(); ++task) {
            const FileShare share = map.share_of_task(task);
            const std::string path = map.path(task, 0);
            CHECK(indices[path].insert(share.index).second);
            sharers[path] = share.sharers;
            firsts[path] += map.is_first_task_of_file(task) ? 1 : 0;
        }
        for (const auto& [path, set] : indices) {
            CAPTURE(path);
            CHECK(set.size() == sharers[path]);
            CHECK(*set.rbegin() == sharers[path] - 1);
            CHECK(firsts[path] == 1);
        }
    }
}

TEST_CASE("a last group may be smaller") {
    const FileMap map("/t", files_like(Mapping::per_group), uneven);
    CHECK(map.distinct_files() == 4);
    CHECK(map.share_of_task(8).sharers == 3);
    CHECK(map.share_of_task(9).sharers == 1);
    CHECK(map.share_of_task(9).index == 0);
}

TEST_CASE("directories exist for every path") {
    for (const DirectoryMapping directory_mapping : {DirectoryMapping::per_task, DirectoryMapping::per_node}) {
        for (const Mapping mapping : {Mapping::per_task, Mapping::per_node, Mapping::per_group, Mapping::many}) {
            Files files = files_like(mapping);
            files.directories = directory_mapping;
            const FileMap map("/t", files, uneven);
            const std::vector<std::string> directories = map.directories();
            const std::set<std::string> all(directories.begin(), directories.end());
            CHECK(all.size() == directories.size());
            for (int task = 0; task < uneven.tasks(); ++task) {
                const std::string path = map.path(task, 0);
                CHECK(all.contains(path.substr(0, path.rfind('/'))));
            }
        }
    }
}

TEST_CASE("paths of a million files are computed without being stored") {
    Files files = files_like(Mapping::many);
    files.count = 100'000'000;
    const TaskMap tasks{4096, std::vector<int>(64, 0)};
    const FileMap map("/t", files, tasks);
    CHECK(map.distinct_files() == 26'214'400'000'000ULL);
    CHECK(map.file_number(262'143, 99'999'999) == 26'214'399'999'999ULL);
    CHECK(map.path(262'143, 99'999'999) == "/t/data.t00262143.99999999");
}

TEST_CASE("shift determines the task of the data to read") {
    Shift shift;
    CHECK(shift_task(shift, 3, uneven) == 3);
    shift.by = ShiftBy::tasks;
    CHECK(shift_task(shift, 3, uneven) == 4);
    CHECK(shift_task(shift, 9, uneven) == 0);
    shift.n = -1;
    CHECK(shift_task(shift, 0, uneven) == 9);
    shift.n = 1'000'000'003;
    CHECK(shift_task(shift, 0, uneven) == 3);
}

TEST_CASE("shift by nodes moves by the tasks of a node") {
    const TaskMap even{2, {0, 0, 1, 1, 2, 2}};
    const Shift shift{ShiftBy::nodes, 1, 1};
    for (int task = 0; task < even.tasks(); ++task) {
        const int other = shift_task(shift, task, even);
        CHECK(even.node_of(other) == (even.node_of(task) + 1) % 3);
        CHECK(even.index_on_node(other) == even.index_on_node(task));
    }
}

TEST_CASE("shift by nodes always changes the node and never overlaps") {
    for (const TaskMap& tasks : {TaskMap{1, {0, 1, 0, 1}}, TaskMap{2, {0, 1, 2, 0, 1, 2}}, TaskMap{3, {0, 1}}}) {
        const Shift shift{ShiftBy::nodes, 1, 1};
        std::set<int> read;
        for (int task = 0; task < tasks.tasks(); ++task) {
            const int other = shift_task(shift, task, tasks);
            CAPTURE(task);
            CHECK(tasks.node_of(other) == (tasks.node_of(task) + 1) % tasks.nodes());
            CHECK(read.insert(other).second);
        }
    }
}

TEST_CASE("nodes of different size are shifted past each other") {
    for (const int n : {1, 2, -1}) {
        std::set<int> read;
        for (int task = 0; task < uneven.tasks(); ++task) {
            const int other = shift_task(Shift{ShiftBy::nodes, n, 1}, task, uneven);
            CHECK(read.insert(other).second);
            CHECK((n == 2 || uneven.node_of(other) != uneven.node_of(task)));
        }
    }
}

TEST_CASE("permuted shift is an exchange, random is any task") {
    const TaskMap tasks{1, std::vector<int>(97, 0)};
    Shift shift{ShiftBy::permute, 1, 5};
    std::set<int> read;
    for (int task = 0; task < tasks.tasks(); ++task) {
        read.insert(shift_task(shift, task, tasks));
    }
    CHECK(read.size() == 97);
    shift.by = ShiftBy::random;
    std::set<int> owners;
    int different = 0;
    for (int task = 0; task < tasks.tasks(); ++task) {
        const int owner = shift_task(shift, task, tasks);
        CHECK(owner >= 0);
        CHECK(owner < 97);
        owners.insert(owner);
        different += owner != shift_task(Shift{ShiftBy::random, 1, 6}, task, tasks) ? 1 : 0;
    }
    CHECK(owners.size() < 97);
    CHECK(owners.size() > 40);
    CHECK(different > 80);
}
