// SPDX-License-Identifier: Apache-2.0
// How a member is read and a mistake is said: values at the ends of their types, what is quoted and how much of it, and
// the place in a text that is not JSON.
#include "plan/document.hpp"
#include "plan/meta.hpp"
#include "plan/plan_error.hpp"
#include "plan/reader.hpp"
#include "plan/units.hpp"

#include <doctest/doctest.h>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using sonde::plan::parse_document;
using sonde::plan::PlanError;
using sonde::plan::Reader;

/// The error text of `call`; empty when it succeeds.
template <class Call>
std::string error_of_call(Call call) {
    try {
        call();
    } catch (const PlanError& error) {
        return error.what();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

std::string error_of_text(const std::string& text) {
    return error_of_call([&] { parse_document(text); });
}

}  // namespace

TEST_CASE("optional_members_are_absent_valid_or_rejected") {
    const nlohmann::json value = nlohmann::json::parse(R"({"n": 7, "d": 1.5, "t": "4KiB", "s": "2s", "b": true,
        "big": 18446744073709551615, "most": 9223372036854775807, "list": ["a", "b"], "empty": [], "o": {"p": 1}})");
    const Reader in(value, "x");
    CHECK(in.integer("n", 7, 7) == 7);
    CHECK_FALSE(in.integer("none", 0, 9));
    CHECK(in.integer("none", 5, 7, 9) == 5);  // what is not there need not be in the range
    CHECK(in.integer("n", 0, 0, 9) == 7);
    CHECK(in.count("n", 0, 0, 9) == 7);
    CHECK(in.count("none", 3, 0, 9) == 3);
    CHECK(in.number("d", 1.5, 1.5) == 1.5);
    CHECK_FALSE(in.number("none", 0, 1));
    CHECK(in.number("none", 2.5, 0, 1) == 2.5);
    CHECK(in.number("n", 0, 10) == 7.0);
    CHECK(in.bytes("t") == 4096);
    CHECK(in.bytes("n") == 7);
    CHECK(in.bytes("most") == INT64_MAX);
    CHECK_FALSE(in.bytes("none"));
    CHECK(in.bytes("none", 3) == 3);
    CHECK(in.duration("s") == 2'000'000'000);
    CHECK(in.duration("d") == 1'500'000'000);
    CHECK_FALSE(in.duration("none"));
    CHECK(in.duration("none", 3) == 3);
    CHECK(in.boolean("b", false));
    CHECK(in.boolean("none", true));
    CHECK(in.text("t") == "4KiB");
    CHECK(in.text("none", "y") == "y");
    CHECK(in.seed(4) == 4);
    CHECK(in.texts("list") == std::vector<std::string>{"a", "b"});
    CHECK(in.texts("empty").empty());
    CHECK(in.texts("none").empty());
    CHECK(in.array("list").at(1).path() == "x.list[1]");
    CHECK(in.object("o").path() == "x.o");
    CHECK(in.object("o").integer("p", 0, 1) == 1);
    CHECK(in.object_or_empty("none").members().empty());
    CHECK(in.object("o").members() == std::vector<std::pair<std::string, nlohmann::json>>{{"p", 1}});
    CHECK(Reader(value, "").array("list").at(0).path() == "list[0]");
    const auto sentence = [&](auto call) { return error_of_call([&] { call(in); }); };
    CHECK(sentence([](const Reader& r) { r.integer("n", 8, 9); }) ==
          "plan: x.n is 7, but must be a whole number from 8 to 9");
    CHECK(sentence([](const Reader& r) { r.integer("n", 8, INT64_MAX); }) ==
          "plan: x.n is 7, but must be a whole number from 8 up");
    CHECK(sentence([](const Reader& r) { r.integer("d", 0, 9); }) ==
          "plan: x.d is 1.5, but must be a whole number from 0 to 9");
    CHECK(sentence([](const Reader& r) { r.integer("big", 0, INT64_MAX); }).find("x.big is 18446744073709551615") !=
          std::string::npos);
    CHECK(sentence([](const Reader& r) { r.number("d", 1.6, 2); }) ==
          "plan: x.d is 1.5, but must be a number from 1.6 to 2.0");
    CHECK(sentence([](const Reader& r) { r.number("d", 0, 1.4); }) ==
          "plan: x.d is 1.5, but must be a number from 0.0 to 1.4");
    CHECK(sentence([](const Reader& r) { r.number("t", 0, 1); }).find("x.t is \"4KiB\"") != std::string::npos);
    CHECK(sentence([](const Reader& r) { r.bytes("b"); }) ==
          "plan: x.b is true, but must be bytes such as 4096 or \"4KiB\"");
    CHECK(sentence([](const Reader& r) { r.duration("b"); }) ==
          "plan: x.b is true, but must be a duration such as \"10s\"");
    CHECK(sentence([](const Reader& r) { r.boolean("n", true); }) == "plan: x.n is 7, but must be true or false");
    CHECK(sentence([](const Reader& r) { r.text("n"); }) == "plan: x.n is 7, but must be text");
    CHECK(sentence([](const Reader& r) { r.text("none"); }) == "plan: x.none is missing: it must be text");
    CHECK(sentence([](const Reader& r) { r.value("none"); }) == "plan: x.none is missing");
    CHECK(sentence([](const Reader& r) { r.object("n"); }) == "plan: x.n is 7, but must be an object");
    CHECK(sentence([](const Reader& r) { r.array("empty"); }) ==
          "plan: x.empty is [], but must be a list with at least one entry");
    CHECK(sentence([](const Reader& r) { r.array("o"); }) ==
          "plan: x.o is {\"p\":1}, but must be a list with at least one entry");
    const nlohmann::json seven = 7;
    CHECK(error_of_call([&] { Reader(seven, "y").has("z"); }) == "plan: y is 7, but must be an object");
    CHECK(error_of_call([&] { Reader(seven, "y").reject_unknown_members(); }) == "plan: y is 7, but must be an object");
}

TEST_CASE("quotes_and_sentences_have_maximum_lengths") {
    const auto sentence = [](const std::string& text) {
        const nlohmann::json value = {{"k", text}};
        return error_of_call([&] { Reader(value, "").integer("k", 0, 1); });
    };
    CHECK(sentence(std::string(58, 'a')) ==
          "plan: k is \"" + std::string(58, 'a') + "\", but must be a whole number from 0 to 1");
    CHECK(sentence(std::string(59, 'a')) ==
          "plan: k is \"" + std::string(56, 'a') + "..., but must be a whole number from 0 to 1");
    const auto failed = [](const std::string& complaint) {
        const nlohmann::json value = nlohmann::json::object();
        return error_of_call([&] { Reader(value, "").fail("k", complaint); });
    };
    CHECK(failed(std::string(592, 'c')) == "plan: k " + std::string(592, 'c'));
    CHECK(failed(std::string(593, 'c')) == "plan: k " + std::string(592, 'c') + "...");
    CHECK(failed("a\nb\x1f"
                 "c\x7f"
                 "d e") == "plan: k a?b?c?d e");
}

TEST_CASE("unknown_name_gets_nearest_or_all_names") {
    const auto sentence = [](const std::string& name) {
        const nlohmann::json value = {{name, 1}};
        const Reader in(value, "");
        in.has("transfer");
        in.has("block");
        return error_of_call([&] { in.reject_unknown_members({"stride"}); });
    };
    CHECK(sentence("tranfer") == "plan: tranfer is not known; did you mean transfer?");
    CHECK(sentence("trans") == "plan: trans is not known; did you mean transfer?");
    CHECK(sentence("tran") == "plan: tran is not known; there are block, stride, transfer");
    CHECK(sentence("xyzfer") == "plan: xyzfer is not known; there are block, stride, transfer");
    CHECK(sentence("lock") == "plan: lock is not known; did you mean block?");
    CHECK(sentence("blcok") == "plan: blcok is not known; did you mean block?");
    CHECK(sentence("stide") == "plan: stide is not known; did you mean stride?");
    CHECK(sentence("a b") == "plan: \"a b\" is not known; there are block, stride, transfer");
    CHECK(sentence("") == "plan: \"\" is not known; there are block, stride, transfer");
    CHECK(sentence("_-9") == "plan: _-9 is not known; there are block, stride, transfer");
    CHECK(sentence(std::string(40, 'k')) ==
          "plan: " + std::string(40, 'k') + " is not known; there are block, stride, transfer");
    CHECK(sentence(std::string(41, 'k')) ==
          "plan: \"" + std::string(41, 'k') + "\" is not known; there are block, stride, transfer");
    CHECK(sentence("block") == "");
}

TEST_CASE("duplicate_member_in_one_object_is_rejected") {
    CHECK(error_of_text(R"({"a": 1, "a": 2})") == "plan: \"a\" is there twice in one object: keep one");
    CHECK(error_of_text(R"({"b": {"a": 1}, "a": 2, "c": [{"a": 1}, {"a": 2}]})") == "");
    CHECK(error_of_text(R"({"b": {"a": 1}, "b": 2})") == "plan: \"b\" is there twice in one object: keep one");
    CHECK(error_of_text(R"({"c": [{"a": 1, "a": 2}]})") == "plan: \"a\" is there twice in one object: keep one");
    const std::string name(80, 'n');
    CHECK(error_of_text("{\"" + name + "\": 1, \"" + name + "\": 2}") ==
          "plan: \"" + std::string(59, 'n') + " is there twice in one object: keep one");
}

TEST_CASE("document_depth_is_limited_to_64") {
    const auto nested = [](std::size_t levels, const std::string& inside) {
        return std::string(levels, '[') + inside + std::string(levels, ']');
    };
    CHECK(error_of_text(nested(64, "1")) == "");
    CHECK(error_of_text(nested(65, "1")) == "the plan is nested more than 64 levels deep: it is not a Sonde plan");
    CHECK(error_of_text(nested(64, "\"[{\\\"[{\\\\\"")) == "");
    CHECK(error_of_text(nested(64, "\"\\\\\", [1]")) != "");
    CHECK(error_of_text(nested(63, "[1], {\"a\": 1}, [2]")) == "");
    CHECK(error_of_text("[\"\\\"]]]]\", " + nested(63, "1") + "]") == "");
    CHECK(error_of_text("[\"\\\"]]]]\", " + nested(64, "1") + "]").find("more than 64 levels") != std::string::npos);
    CHECK(error_of_text("\"abc\\") != "");
    CHECK(parse_document("[1, {\"a\": [2]}]").dump() == "[1,{\"a\":[2]}]");
}

TEST_CASE("json_error_has_line_column_and_toml_hint") {
    const char* const expected = ": something else was expected";
    CHECK(error_of_text("{\"a\": }") == std::string("the plan is not JSON: line 1, column 7") + expected);
    CHECK(error_of_text("{\n\"a\": 1,\n  x}") == std::string("the plan is not JSON: line 3, column 3") + expected);
    CHECK(error_of_text("x") == std::string("the plan is not JSON: line 1, column 1") + expected);
    CHECK(error_of_text("{\"a\": 1").find("the text ends too early") != std::string::npos);
    CHECK(error_of_text("{\"a\": 1\n").find("line 2, column 1: the text ends too early") != std::string::npos);
    for (const char* nothing : {"", " ", "\n\t\r "}) {
        CHECK(error_of_text(nothing) ==
              "the plan is empty: it must be a JSON object with the members schema, id, target and phases");
    }
    const auto looks_like_toml = [](const char* text) {
        return error_of_text(text).ends_with("; it looks like TOML, which `sonde run` reads");
    };
    CHECK(looks_like_toml("id = \"p\"\n[target]\n"));
    CHECK(looks_like_toml("\n\n id = \"p\""));
    CHECK_FALSE(looks_like_toml("{id = 3}"));
    CHECK_FALSE(looks_like_toml("text\nid = 3"));
    CHECK(error_of_text("{\"a\": 1e999}") == "the plan holds a number beyond what a computer can hold, such as 1e999");
}

TEST_CASE("quantities_at_and_beyond_their_limits") {
    using sonde::plan::format_bytes;
    using sonde::plan::parse_bytes;
    using sonde::plan::parse_duration;
    using sonde::plan::parse_rate;
    CHECK(parse_duration("3200000000s") == 3'200'000'000'000'000'000);
    CHECK(error_of_call([] { parse_duration("3200000001s"); }) == "'3200000001s' is longer than a hundred years");
    CHECK(error_of_call([] { parse_duration("1d"); }) == "'1d' has an unknown unit: use ns, us, ms, s, min or h");
    CHECK(error_of_call([] { parse_duration("x"); }) == "'x' is not a duration such as 10s or 500ms");
    CHECK(error_of_call([] { parse_rate(""); }) == "'' is not a rate such as 100MB/s");
    CHECK(error_of_call([] { parse_rate("s"); }) == "'s' is not a rate such as 100MB/s");
    CHECK(error_of_call([] { parse_rate("/s"); }) == "'/s' is not a rate such as 100MB/s");
    CHECK(error_of_call([] { parse_rate("1/s"); }) == "'1/s' has an unknown unit: use for instance MB/s or MiB/s");
    CHECK(error_of_call([] { parse_rate("0B/s"); }) == "'0B/s' must be more than zero");
    CHECK(error_of_call([] { parse_bytes("1Q"); }).find("has an unknown unit: use B, kB, MB") != std::string::npos);
    CHECK(error_of_call([] { parse_bytes("9223372036854775808"); }) ==
          "'9223372036854775808' is more than a file can hold");
    CHECK(error_of_call([] { parse_bytes("9223372036854775807.5"); }) ==
          "'9223372036854775807.5' is not a whole number of bytes");
    CHECK(parse_bytes("8191.9990234375PiB") == (8192ULL << 50U) - (1ULL << 40U));
    CHECK(error_of_call([] { parse_bytes("0.0000000000000000000000000001PiB"); }) ==
          "'0.0000000000000000000000000001PiB' is not a whole number of bytes");
    CHECK(parse_bytes("1.0000000000000000000000000000PiB") == 1ULL << 50U);
    CHECK(parse_bytes("1.") == 1);
    CHECK(format_bytes(1ULL << 50U) == "1 PiB");
    CHECK(format_bytes((1ULL << 50U) - (1ULL << 49U)) == "512 TiB");
}

TEST_CASE("directories_are_counted_up_to_one_billion") {
    const auto make_tree = [](int depth, int branching) {
        sonde::plan::Tree tree;
        tree.depth = depth;
        tree.branching = branching;
        return tree;
    };
    CHECK(sonde::plan::count_directories(make_tree(1, 999'999'999)) == 1'000'000'000);
    CHECK(sonde::plan::count_directories(make_tree(1, 1'000'000'000)) == 0);
    CHECK(sonde::plan::count_leaf_directories(make_tree(1, 1'000'000'000)) == 1'000'000'000);
    CHECK(sonde::plan::count_leaf_directories(make_tree(2, 1'000'000'000)) == 0);
    CHECK(sonde::plan::count_leaf_directories(make_tree(0, 5)) == 1);
    CHECK(sonde::plan::count_leaf_directories(make_tree(2, 5)) == 25);
    CHECK(sonde::plan::count_directories(make_tree(29, 2)) == 0);
    CHECK(sonde::plan::count_directories(make_tree(28, 2)) == 536'870'911);
    CHECK(sonde::plan::count_directories(make_tree(100'000, 1)) == 100'001);
}
