// SPDX-License-Identifier: Apache-2.0
// The numbering of trees, Zipf's distribution, and what is said of rates that change.
#include "patterns/tree.hpp"
#include "files/trees.hpp"
#include "patterns/zipf.hpp"
#include "results/tree_findings.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>

using namespace sonde;

namespace {

plan::Tree tree_of(int depth, int branching, bool leaf_only, std::uint64_t per_dir, int copies = 1) {
    plan::Tree tree;
    tree.depth = depth;
    tree.branching = branching;
    tree.leaf_only = leaf_only;
    tree.items_per_dir = per_dir;
    tree.copies = copies;
    return tree;
}

}  // namespace

TEST_CASE("directories and leaves are counted as a geometric series") {
    CHECK(plan::count_directories(tree_of(0, 5, false, 0)) == 1);
    CHECK(plan::count_directories(tree_of(7, 1, false, 0)) == 8);
    CHECK(plan::count_leaf_directories(tree_of(7, 1, false, 0)) == 1);
    CHECK(plan::count_directories(tree_of(3, 4, false, 0)) == 85);
    CHECK(plan::count_leaf_directories(tree_of(3, 4, false, 0)) == 64);
    CHECK(plan::count_directories(tree_of(100'000, 2, false, 0)) == 0);
    CHECK(plan::count_directories(tree_of(2, 1'000'000'000, false, 0)) == 0);
}

TEST_CASE("each item has a unique path and a directory number") {
    for (const bool leaf_only : {false, true}) {
        const patterns::TreeShape shape(tree_of(2, 3, leaf_only, 5, 2));
        std::set<std::pair<std::uint64_t, std::uint64_t>> positions;
        for (std::uint64_t item = 0; item < shape.items(); ++item) {
            const auto position = shape.locate_item(item);
            CHECK(position.number / 5 == position.directory);
            CHECK(shape.is_item_directory(position.directory));
            positions.insert({position.copy, position.number});
        }
        CHECK(positions.size() == shape.items());
        CHECK(shape.items() == 2 * 5 * (leaf_only ? 9 : 13));
    }
}

TEST_CASE("a path names the ancestors of a directory") {
    const patterns::TreeShape shape(tree_of(3, 3, false, 1, 11));
    std::string path = "/r/";
    shape.append_path(path, "branch", 10, 38);
    CHECK(path == "/r/items-10/branch.0/branch.3/branch.12/branch.38");
    CHECK(shape.is_child(12, 38));
    CHECK(!shape.is_child(11, 38));
    CHECK(shape.copy_of("items-10") == 10);
    CHECK(!shape.copy_of("items-11"));
    CHECK(!shape.copy_of("items-010"));
    CHECK(!shape.copy_of("items-"));
    CHECK(!shape.copy_of("items"));
}

TEST_CASE("tree shape gives counts, root and first child") {
    const patterns::TreeShape leaves(tree_of(2, 3, true, 5, 2));
    CHECK(leaves.directories() == 13);
    CHECK(leaves.copies() == 2);
    CHECK(leaves.items_per_dir() == 5);
    CHECK(leaves.item_directories() == 9);
    CHECK(leaves.first_item_directory() == 4);
    const patterns::TreeShape all(tree_of(2, 3, false, 5));
    CHECK(all.item_directories() == 13);
    CHECK(all.first_item_directory() == 0);
    CHECK_FALSE(leaves.is_item_directory(3));
    CHECK(leaves.is_item_directory(4));
    std::string path;
    leaves.append_path(path, "b", 1, 0);
    CHECK(path == "items-1/b.0");
    path.clear();
    leaves.append_path(path, "b", 0, 1);
    CHECK(path == "items-0/b.0/b.1");
    CHECK(leaves.top_name(1) == "items-1");
    CHECK(patterns::TreeShape::directory_name("b", 7) == "b.7");
    CHECK_FALSE(leaves.is_child(0, 0));
    CHECK_FALSE(leaves.is_child(4, 13));
    CHECK(leaves.is_child(3, 12));
    const auto last = leaves.locate_item(89);
    CHECK(last.copy == 1);
    CHECK(last.directory == 12);
    CHECK(last.number == 64);
}

TEST_CASE("item names contain their task") {
    plan::Meta meta;
    CHECK(patterns::make_item_stem(meta, 7) == "file.7.");
    meta.shared_single = true;
    CHECK(patterns::make_item_stem(meta, 7) == "file.shared.");
    meta.objects = plan::Objects::directories;
    CHECK(patterns::make_item_stem(meta, 7) == "dir.7.");
    meta.names.directory = "d";
    CHECK(patterns::make_item_stem(meta, 0) == "d.0.");
}

TEST_CASE("numbers are read without signs and superfluous zeros") {
    CHECK(patterns::parse_decimal("0") == 0);
    CHECK(patterns::parse_decimal("10") == 10);
    for (const char* wrong : {"", "00", "01", "+1", "-1", " 1", "1 ", "1a", "99999999999999999999"}) {
        CHECK_FALSE(patterns::parse_decimal(wrong));
    }
}

TEST_CASE("Zipf: ranks come as often as 1 / rank^s") {
    for (const double exponent : {0.5, 1.0, 1.0 + 1e-10, 2.5}) {
        constexpr std::uint64_t n = 50;
        constexpr int draws = 200'000;
        const patterns::Zipf zipf(n, exponent, 7);
        std::map<std::uint64_t, int> counts;
        for (std::uint64_t i = 0; i < draws; ++i) {
            ++counts[zipf(i)];
        }
        CHECK(counts.begin()->first >= 1);
        CHECK(counts.rbegin()->first <= n);
        double sum = 0;
        for (std::uint64_t rank = 1; rank <= n; ++rank) {
            sum += std::pow(static_cast<double>(rank), -exponent);
        }
        for (std::uint64_t rank = 1; rank <= n; ++rank) {
            const double expected = draws * std::pow(static_cast<double>(rank), -exponent) / sum;
            // Five standard deviations of a count.
            CHECK(std::abs(counts[rank] - expected) < 5 * std::sqrt(expected) + 1);
        }
    }
}

TEST_CASE("Zipf: one item is constant and many need no memory") {
    CHECK(patterns::Zipf(1, 1.0, 3)(5) == 1);
    const patterns::Zipf many(1'000'000'000'000, 1.0, 3);
    std::uint64_t beyond = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        beyond += many(i) > 1'000'000 ? 1 : 0;
    }
    CHECK(beyond > 350);  // half of the weight of 1/k lies beyond the root of n
    CHECK(beyond < 650);
}

TEST_CASE("tree naming accepts exactly the names of its rule") {
    files::TreeRule rule;
    rule.tree = tree_of(1, 3, true, 10);
    files::TaskMap tasks{2, {0, 0}};
    const files::TreeNaming naming(rule, tasks);
    using Kind = files::TreeNaming::NameKind;
    CHECK(naming.branch_of_root("branch.0") == "branch");
    CHECK(naming.branch_of_root("branch.1.0").empty());
    CHECK(naming.find_subdirectory("branch", 0, "branch.3") == 3);
    CHECK(!naming.find_subdirectory("branch", 0, "branch.4"));
    CHECK(!naming.find_subdirectory("branch", 1, "branch.3"));
    CHECK(naming.classify_name(1, "file.3.19") == Kind::file);
    CHECK(naming.classify_name(1, "file.3.19-XX") == Kind::file);
    CHECK(naming.classify_name(1, "dir.0.10") == Kind::directory);
    CHECK(naming.classify_name(0, "file.0.0") == Kind::none);   // not a leaf
    CHECK(naming.classify_name(1, "file.4.19") == Kind::none);  // there are tasks 0 to 3
    CHECK(naming.classify_name(1, "file.3.20") == Kind::none);  // of the next directory
    CHECK(naming.classify_name(1, "file.3.019") == Kind::none);
    CHECK(naming.classify_name(1, "file.shared.19") == Kind::none);
    CHECK(naming.classify_name(1, "file.3.") == Kind::none);
}

namespace {

/// Returns the finding of a stat phase on the source of its names (cache or servers) after a change by `with`.
std::string list_name_findings(const std::function<void(plan::Phase&, results::PhaseCircumstances&)>& with) {
    plan::Phase phase;
    phase.id = "stat";
    phase.op = plan::Op::stat;
    phase.meta.emplace();
    results::PhaseCircumstances about;
    about.phase = &phase;
    with(phase, about);
    results::Totals totals;
    totals.file_operations = 100;
    const auto findings = results::find_tree_findings(totals, about);
    return findings.empty() ? "" : findings.front().at("text").get<std::string>();
}

results::Totals creations(double system_us) {
    results::Totals totals;
    totals.file_operations = 20'000;
    results::TaskRow row;
    row.transfer_ns = 20'000LL * 300'000;
    row.system_ns = static_cast<std::uint64_t>(20'000 * system_us * 1000);
    totals.rows.push_back(row);
    return totals;
}

}  // namespace

TEST_CASE("only creates after mass deletes on ext4 are reported") {
    plan::Phase phase;
    phase.id = "create";
    phase.op = plan::Op::create;
    phase.meta.emplace();
    results::PhaseCircumstances about;
    about.phase = &phase;
    about.file_system = "ext4";
    about.earlier_removal = "remove";
    const auto is_reported = [&](double system_us) {
        const auto findings = results::find_tree_findings(creations(system_us), about);
        return !findings.empty() && findings.front().at("id") == "recent_deletes";
    };
    CHECK(is_reported(280));
    CHECK(!is_reported(12));  // as on a fresh file system
    CHECK(is_reported(85));   // on a machine where others use the cores
    CHECK(!is_reported(55));  // four fifths of the time were spent waiting, so something else is slow
    about.file_system = "xfs";
    CHECK(!is_reported(280));
    about.file_system = "ext4";
    phase.op = plan::Op::remove_items;
    CHECK(!is_reported(280));
}

TEST_CASE("names count as cold by executed drops, not planned drops") {
    const auto drops = [](plan::Phase& phase) { phase.before.emplace_back().kind = "drop_page_cache"; };
    const std::string cached = "names and attributes that this node made may have come from its memory";
    CHECK(list_name_findings([](auto&, auto&) {}) == cached);
    CHECK(list_name_findings([&](auto& phase, auto& about) {
              drops(phase);
              about.dropped_metadata_cache = true;
          }) == "");
    CHECK(list_name_findings([&](auto& phase, auto&) { drops(phase); }) ==
          cached + ", which the treatment before did not empty on every node");
    CHECK(list_name_findings([](auto&, auto& about) { about.nodes = 2; }) == cached);  // each looks at its own
    CHECK(list_name_findings([](auto&, auto& about) { about.reads_names_of_other_nodes = true; }) == "");
    CHECK(list_name_findings([](auto&, auto& about) { about.memory_backed = true; }) == "");
}
