// SPDX-License-Identifier: Apache-2.0
// Lists of operations for a replay: what is read, and the sentence for each way in which a file can be wrong.
#include "patterns/operation_list.hpp"
#include "../temporary_folder.hpp"
#include "plan/plan_error.hpp"

#include <doctest/doctest.h>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

using sonde::patterns::check_operation_list;
using sonde::patterns::ListedOperation;
using sonde::patterns::OperationListHeader;
using sonde::patterns::read_task_operations;
using sonde::patterns::ReplayCall;
using sonde::patterns::TaskOperations;

namespace {

/// A list in memory: two tasks, two files; task 0 writes and removes file 0, task 1 reads file 1.
struct List {
    OperationListHeader header;
    std::vector<std::uint64_t> counts{5, 3};
    std::vector<std::uint64_t> sizes{3000, 512};
    std::vector<ListedOperation> operations{
        {.file = 0, .handle = 1, .kind = ReplayCall::open, .flags = 6},
        {.think_ns = 1500, .offset = 2000, .length = 1000, .file = 0, .handle = 1, .kind = ReplayCall::write},
        {.file = 0, .handle = 1, .kind = ReplayCall::fsync},
        {.file = 0, .handle = 1, .kind = ReplayCall::close},
        {.file = 0, .kind = ReplayCall::remove},
        {.file = 1, .kind = ReplayCall::open, .flags = 1},
        {.offset = 0, .length = 512, .file = 1, .kind = ReplayCall::read},
        {.file = 1, .kind = ReplayCall::close},
    };

    List() {
        header.tasks = 2;
        header.files = 2;
        header.handles = 2;
        header.largest_transfer = 1000;
        header.operations = 8;
        header.file_bytes = 3512;
    }

    std::string to_text() const {
        std::string text;
        const auto add = [&text](const void* data, std::size_t size) {
            text.append(static_cast<const char*>(data), size);
        };
        add(&header, sizeof header);
        add(counts.data(), 8 * counts.size());
        add(sizes.data(), 8 * sizes.size());
        add(operations.data(), sizeof(ListedOperation) * operations.size());
        return text;
    }
};

/// The complaint about a file with this content; empty: none.
std::string find_complaint(const std::string& text) {
    const sonde::tests::TemporaryFolder folder;
    const std::string path = folder.write("list", text);
    try {
        check_operation_list(path);
    } catch (const sonde::plan::PlanError& error) {
        std::string message = error.what();
        const std::size_t position = message.find(path);
        REQUIRE(position != std::string::npos);
        return message.substr(position + path.size() + 1);
    }
    return {};
}

}  // namespace

TEST_CASE("operation list of two tasks is read by task") {
    const sonde::tests::TemporaryFolder folder;
    const std::string path = folder.write("list", List().to_text());
    CHECK(check_operation_list(path).file_bytes == 3512);
    const TaskOperations first = read_task_operations(path, 0);
    REQUIRE(first.operations.size() == 5);
    CHECK(first.operations[1].offset == 2000);
    CHECK(first.operations[1].think_ns == 1500);
    CHECK(first.operations[4].kind == ReplayCall::remove);
    CHECK(first.bytes == 1000);
    CHECK(first.handles == 2);
    const TaskOperations second = read_task_operations(path, 1);
    REQUIRE(second.operations.size() == 3);
    CHECK(second.operations[1].length == 512);
    CHECK(second.bytes == 512);
    CHECK_THROWS_AS(read_task_operations(path, 2), sonde::plan::PlanError);
}

TEST_CASE("wrong operation lists are refused in one sentence") {
    struct Case {
        const char* complaint;
        std::function<void(List&)> change;
    };
    const std::vector<Case> cases{
        {"is no list of operations", [](List& list) { list.header.magic[0] = 'X'; }},
        {"has version 2, but this engine reads version 1", [](List& list) { list.header.version = 2; }},
        {"impossible numbers in its header", [](List& list) { list.header.tasks = 0; }},
        {"impossible numbers in its header", [](List& list) { list.header.handles = 1U << 20U; }},
        {"impossible numbers in its header", [](List& list) { list.header.reserved = 1; }},
        {"but its header says 384 B: it is incomplete", [](List& list) { list.header.operations = 9; }},
        {"more operations of tasks than in all", [](List& list) { list.counts[1] = 4; }},
        {"tables that do not agree", [](List& list) { list.counts[1] = 2; }},
        {"tables that do not agree", [](List& list) { list.header.file_bytes = 1; }},
        {"files of more than 4 EiB", [](List& list) { list.sizes[0] = ~0ULL; }},
        {"operation 1 of task 1 has an unknown kind 9",
         [](List& list) { list.operations[6].kind = static_cast<ReplayCall>(9); }},
        {"operation 0 of task 0 (open) names file 7 of 2", [](List& list) { list.operations[0].file = 7; }},
        {"(open) names handle 2 of 2", [](List& list) { list.operations[0].handle = 2; }},
        {"(write) has flags that", [](List& list) { list.operations[1].flags = 1; }},
        {"(open) has flags that", [](List& list) { list.operations[0].flags = 16; }},
        {"(fsync) has flags that", [](List& list) { list.operations[2].reserved = 1; }},
        {"a think time of more than a day", [](List& list) { list.operations[1].think_ns = 86'400'000'000'001; }},
        {"(write) is longer than the header allows (999 B)", [](List& list) { list.header.largest_transfer = 999; }},
        {"(write) reaches beyond the size of its file (3000 B)", [](List& list) { list.operations[1].offset = 2001; }},
        {"(write) reaches beyond", [](List& list) { list.operations[1].offset = ~0ULL; }},
        {"(write) is on handle 0, in which that file is not open", [](List& list) { list.operations[1].handle = 0; }},
        {"(fsync) is on handle 1, in which", [](List& list) { list.operations[2].file = 1; }},
        {"(open) opens a file for neither", [](List& list) { list.operations[0].flags = 4; }},
        {"(open) opens handle 1, which is open",
         [](List& list) {
             list.operations[2].kind = ReplayCall::open;
             list.operations[2].flags = 1;
         }},
        {"task 1 never closes", [](List& list) { list.operations[7].kind = ReplayCall::fsync; }},
    };
    CHECK(find_complaint(List().to_text()).empty());
    for (const Case& rejected_case : cases) {
        List list;
        rejected_case.change(list);
        const std::string complaint = find_complaint(list.to_text());
        CAPTURE(complaint);
        CHECK(complaint.find(rejected_case.complaint) != std::string::npos);
    }
}

TEST_CASE("operation list that is too short or missing is refused") {
    CHECK(find_complaint("SONDEOPS").find("shorter than a header") != std::string::npos);
    CHECK(find_complaint("").find("shorter than a header") != std::string::npos);
    const std::string content = List().to_text();
    CHECK(find_complaint(content.substr(0, content.size() - 1)).find("it is incomplete") != std::string::npos);
    CHECK_THROWS_WITH_AS(check_operation_list("/nowhere/list"),
                         "plan: replay_file /nowhere/list cannot be read: No such file or directory",
                         sonde::plan::PlanError);
    CHECK_THROWS_WITH_AS(check_operation_list("/tmp"), "plan: replay_file /tmp is no regular file",
                         sonde::plan::PlanError);
}
