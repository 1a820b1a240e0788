// SPDX-License-Identifier: Apache-2.0
// Which seconds of a phase are mdtest's: those from the first operation of any task to the end of the last.
#include "dialects/mdtest/results.hpp"

#include <doctest/doctest.h>

using namespace sonde::dialects::mdtest;
using nlohmann::ordered_json;

namespace {

ordered_json table(const char* phase, const ordered_json& rows) {
    return {{"phase", phase}, {"columns", {"task", "ops", "start_s", "end_s"}}, {"rows", rows}};
}

}  // namespace

TEST_CASE("time before the first operation is in no mdtest rate") {
    // 8 directories by one task in a quarter of a second, three quarters after the common start; the other does nothing
    MdtestResults results(1);
    results.read_record_line("tasks", table("0-tree-create", {{0, 8, 0.75, 1.0}, {1, 0, 0.0, 0.0}}), 2);
    const TestResult& tree = results.results_by_iteration[0][tree_create];
    CHECK(tree.duration_s == doctest::Approx(0.25));
    CHECK(tree.get_task_seconds(0) == doctest::Approx(0.25));
    CHECK(tree.get_task_seconds(1) == 0);
}

TEST_CASE("partial tables begin with the earliest task of all parts") {
    MdtestResults results(1);
    results.read_record_line("tasks", table("0-file-stat", {{0, 4, 0.50, 0.9}}), 2);
    results.read_record_line("tasks", table("0-file-stat", {{1, 4, 0.25, 1.0}}), 2);
    CHECK(results.results_by_iteration[0][file_stat].duration_s == doctest::Approx(0.75));
    CHECK(results.results_by_iteration[0][file_stat].get_task_seconds(0) == doctest::Approx(0.65));
}

TEST_CASE("mdtest time of two phases excludes the time before each") {
    MdtestResults results(1);
    results.read_record_line("tasks", table("0-file-create-by-first", {{0, 4, 0.5, 1.0}, {1, 0, 0.0, 0.0}}), 2);
    results.read_record_line("tasks", table("0-file-create", {{0, 2, 0.25, 1.0}, {1, 2, 0.5, 0.75}}), 2);
    CHECK(results.results_by_iteration[0][file_create].duration_s == doctest::Approx(0.5 + 0.75));
}
