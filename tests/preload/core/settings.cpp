// SPDX-License-Identifier: Apache-2.0
#include "settings/glob.hpp"
#include "settings/params.hpp"

#include <doctest/doctest.h>
#include <fnmatch.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace sonde::settings;

namespace {

std::vector<std::string> warnings;

std::unique_ptr<Settings> parse(const std::string& text) {
    warnings.clear();
    auto settings = std::make_unique<Settings>();
    read_params(text.c_str(), *settings, [](const char* sentence) { warnings.emplace_back(sentence); });
    return settings;
}

}  // namespace

TEST_CASE("patterns match as the shell's do") {
    std::mt19937 random(11);
    const std::string signs = "ab*?[]!-/.\\";
    int matched = 0;
    for (int round = 0; round < 200000; ++round) {
        std::string pattern;
        std::string name;
        for (unsigned i = 0; i < random() % 7; ++i) {
            pattern += signs[random() % signs.size()];
        }
        for (unsigned i = 0; i < random() % 6; ++i) {
            name += "ab/.-"[random() % 5];
        }
        // POSIX leaves the meaning of malformed patterns undefined.
        if (pattern.find('[') != std::string::npos || (!pattern.empty() && pattern.back() == '\\')) {
            continue;
        }
        const bool truth = fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
        CAPTURE(pattern);
        CAPTURE(name);
        REQUIRE(glob_matches(pattern.c_str(), name.c_str()) == truth);
        matched += truth ? 1 : 0;
    }
    CHECK(matched > 1000);
    for (const char* pattern : {"[ab]x", "[!a]x", "[a-c]x", "*[0-9]", "a[]]b", "[^x]y", "data.[ch]"}) {
        for (const char* name : {"ax", "bx", "zx", "run7", "a]b", "zy", "data.c", "data.d", ""}) {
            CAPTURE(pattern);
            CAPTURE(name);
            CHECK(glob_matches(pattern, name) == (fnmatch(pattern, name, 0) == 0));
        }
    }
}

TEST_CASE("pattern_without_slash_matches_last_path_part") {
    CHECK(pattern_covers("GRIBFILE.*", "./GRIBFILE.AAA", nullptr));
    CHECK(pattern_covers("*nemsio", "/scratch/run/sfc.nemsio", nullptr));
    CHECK(pattern_covers("/scratch/*", "x", "/scratch/x"));
    CHECK_FALSE(pattern_covers("run/*", "/scratch/x", "/scratch/x"));
}

TEST_CASE("settings of production job scripts are parsed as documented") {
    SUBCASE("weather") {
        const auto settings = parse("*nemsio:verbose:size=4M,*:verbose:size=4M");
        REQUIRE(settings->rule_count == 2);
        CHECK(std::string(settings->rules[0].pattern) == "*nemsio");
        CHECK(settings->rules[0].buffer_bytes == 4U << 20U);
        CHECK(settings->rules[0].buffer_count == 4);
        CHECK(settings->rules[1].verbose);
    }
    SUBCASE("many large buffers") {
        const auto settings = parse("*IOR_POSIX*:count=32:size=1g:prefetch=8:preflush=8");
        CHECK(settings->rules[0].buffer_bytes == 1U << 30U);
        CHECK(settings->rules[0].buffer_count == 32);
        CHECK(settings->rules[0].prefetch == 8);
    }
    SUBCASE("earthquakes, with the standard streams") {
        const auto settings = parse("*mesh.e:size=1M:count=64:ignoreflush:lazyclose,*.e:size=2M,%stdout,%stderr");
        REQUIRE(settings->rule_count == 2);
        CHECK(settings->rules[0].buffer_count == 64);
        CHECK(settings->standard_output_bytes == 1U << 20U);
    }
    SUBCASE("blanks after an equals sign, an old member") {
        const auto settings = parse("*:size= 1M:count=4:vbuffer_count=4096:prefetch=1");
        CHECK(settings->rules[0].buffer_bytes == 1U << 20U);
        CHECK(settings->rules[0].prefetch == 1);
    }
    CHECK(warnings.empty());
}

TEST_CASE("invalid settings are reported and valid settings used") {
    CHECK(parse("12M:verbose")->rule_count == 1);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("looks like a size") != std::string::npos);
    CHECK(parse("*:sice=4M:count=7")->rules[0].buffer_count == 7);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("sice=4M") != std::string::npos);
    CHECK(parse("*:size=lots")->rules[0].buffer_bytes == 1U << 20U);
    CHECK(warnings.size() == 1);
    CHECK(parse("*:size=1")->rules[0].buffer_bytes == 512);
    CHECK(warnings.size() == 1);
    CHECK(parse(":size=4M,*.dat")->rule_count == 1);
    CHECK(warnings.size() == 1);
    CHECK(parse("*.log:alone")->rules[0].is_only_user);
    CHECK_FALSE(parse("*.log:alone:alone=off")->rules[0].is_only_user);
    CHECK(warnings.empty());
    CHECK(parse("*.h5:mpiio=disjoint")->rules[0].mpi_disjoint);
    CHECK_FALSE(parse("*.h5:mpiio=disjoint:mpiio=off")->rules[0].mpi_disjoint);
    CHECK_FALSE(parse("*.h5:mpiio=all")->rules[0].mpi_disjoint);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("\"all\"") != std::string::npos);
    CHECK(parse("*:eager")->rule_count == 1);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("\"eager\"") != std::string::npos);
    CHECK(parse("")->rule_count == 0);
    CHECK(parse(",,\n ,")->rule_count == 0);
    CHECK(warnings.empty());
    CHECK(parse("%process:threads=1:maxmem=64M:age=9")->limits.threads == 1);
    CHECK(warnings.empty());
    CHECK(parse("%process:thread=1")->rule_count == 0);
    CHECK(warnings.size() == 1);
}

TEST_CASE("unknown keyword after a percent sign is no pattern") {
    for (const char* params : {"%processor:maxmem=1M", "%Process:maxmem=1M", "% process", "%", "%processes:age=1"}) {
        CAPTURE(params);
        CHECK(parse(params)->rule_count == 0);
        REQUIRE(warnings.size() == 1);
        CHECK(warnings[0].find("; known are %process, ") != std::string::npos);
    }
    CHECK(parse("*.dat,%locked:size=4M,%stdin,%stderr,%process:age=1")->rule_count == 1);
    CHECK(parse("\\%a.dat,/run/%a.dat")->rule_count == 2);
    CHECK(warnings.empty());
}

TEST_CASE("options with invalid values are reported and ignored") {
    CHECK_FALSE(parse("*:direct=maybe")->rules[0].direct);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("takes on or off and is ignored: direct=maybe.") != std::string::npos);
    CHECK(parse("*:direct=on")->rules[0].direct);
    CHECK(parse("*:direct=yes:alone=1")->rules[0].is_only_user);
    CHECK(warnings.empty());
    CHECK(parse("*:size")->rules[0].buffer_bytes == 1U << 20U);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("not a number and is ignored: size.") != std::string::npos);
    for (const char* text : {"*:only=", "*:not"}) {
        parse(text);
        REQUIRE(warnings.size() == 1);
        CHECK(warnings[0].find(std::string("needs the name of a program: ") + (text + 2) + ".") != std::string::npos);
    }
}

TEST_CASE("a settings file has one entry a line, and comments") {
    const auto settings = parse("# ours\n*.dat:size=2M\n\n  # off for these\n*.log:off\nname#1\n");
    REQUIRE(settings->rule_count == 3);
    CHECK(std::string(settings->rules[2].pattern) == "name#1");
    CHECK(find_rule_by_name(*settings, "run.log", "/scratch/run.log") == nullptr);
    CHECK(find_rule_by_name(*settings, "run.dat", "/scratch/run.dat") == &settings->rules[0]);
}

TEST_CASE("system paths are covered only by explicit patterns") {
    const auto settings = parse("*");
    CHECK(find_rule_by_name(*settings, "/etc/hosts", "/etc/hosts") == nullptr);
    CHECK(find_rule_by_name(*settings, "shm", "/dev/shm/x") != nullptr);
    CHECK(find_rule_by_name(*parse("/etc/*"), "/etc/hosts", "/etc/hosts") != nullptr);
}

TEST_CASE("options without a pattern are for all files") {
    Settings given_for_all;
    read_params("count=2:size=32m:direct,*.log:off", given_for_all, [](const char*) { FAIL("nothing to say"); });
    REQUIRE(given_for_all.rule_count == 2);
    CHECK(std::string(given_for_all.rules[0].pattern) == "*");
    CHECK(given_for_all.rules[0].buffer_count == 2);
    CHECK(given_for_all.rules[0].buffer_bytes == 32U << 20U);
    CHECK(given_for_all.rules[0].direct);
    CHECK(given_for_all.rules[1].is_disabled);
}

TEST_CASE("rule_by_relative_path_is_decided_unless_the_path_matters") {
    CHECK(find_rule_index(*parse("*"), "x") == 0);
    CHECK(find_rule_index(*parse("*.log:off,*"), "run.log") == no_rule);
    CHECK(find_rule_index(*parse("out.dat,a.dat"), "a.dat") == 1);
    CHECK(find_rule_index(*parse("out.dat"), "run/out.dat") == 0);
    CHECK(find_rule_index(*parse("out.dat"), "b.dat") == no_rule);
    CHECK(find_rule_index(*parse("*.dat"), "link") == rule_by_absolute_path);
    CHECK(find_rule_index(*parse("/scratch/x"), "x") == rule_by_absolute_path);
    CHECK(find_rule_index(*parse(""), "x") == no_rule);
}

TEST_CASE("no text makes the parser stumble") {
    std::mt19937 random(3);
    const std::string signs = "*:=,%#\n 0129kMgsizecountverbose\\[]";
    for (int round = 0; round < 50000; ++round) {
        std::string text;
        for (unsigned i = 0; i < random() % 40; ++i) {
            text += signs[random() % signs.size()];
        }
        const auto settings = parse(text);
        REQUIRE(settings->rule_count <= Settings::max_rules);
        for (std::size_t i = 0; i < settings->rule_count; ++i) {
            REQUIRE(settings->rules[i].buffer_bytes >= 512);
            REQUIRE(settings->rules[i].buffer_count >= 1);
        }
    }
}

TEST_CASE("entry_for_another_program_is_skipped") {
    const auto read = [](const char* text) {
        auto settings = std::make_unique<Settings>();
        settings->program = "/apps/solver/bin/solve";
        read_params(text, *settings, [](const char*) {});
        return settings;
    };
    CHECK(read("*.dat:only=solve")->rule_count == 1);
    CHECK(read("*.dat:only=/apps/*")->rule_count == 1);
    CHECK(read("*.dat:only=other")->rule_count == 0);
    CHECK(read("*.dat:only=other:only=solve")->rule_count == 1);
    CHECK(read("*.dat:not=solve")->rule_count == 0);
    CHECK(read("*.dat:not=other:size=4M")->rules[0].buffer_bytes == 4U << 20U);
    CHECK(read("only=solve:size=4M")->rule_count == 1);
    CHECK(read("*,%process:not=solve")->is_excluded);
    CHECK_FALSE(read("*,%process:only=solve:threads=1")->is_excluded);
}

TEST_CASE("locked_option_holds_in_entries_that_follow") {
    const auto settings =
        parse("first:size=8M\n%locked:size=2M:alone=off:maxmem=64M\n*:size=4M:alone,%process:maxmem=1G");
    REQUIRE(settings->rule_count == 2);
    CHECK(settings->rules[0].buffer_bytes == 8U << 20U);
    CHECK(settings->rules[1].buffer_bytes == 2U << 20U);
    CHECK_FALSE(settings->rules[1].is_only_user);
    CHECK(settings->limits.memory == 64U << 20U);
    REQUIRE(warnings.size() == 3);
    CHECK(warnings[1].find("alone") != std::string::npos);
    CHECK_FALSE(settings->locked_options.is_disabled);
    CHECK(parse("%locked:off\n*:size=4M")->rules[0].is_disabled);
}

TEST_CASE("lock_for_another_program_has_no_effect") {
    const auto settings = parse("%locked:only=other:off:size=2M\n%process:not=other:threads=1\n*:size=4M");
    CHECK(warnings.empty());
    CHECK_FALSE(settings->locked_options.is_disabled);
    CHECK(settings->rules[0].buffer_bytes == 4U << 20U);
    CHECK(settings->limits.threads == 1);
}

TEST_CASE("program_longer_than_any_path_matches_nothing") {
    const std::string name(5000, '*');
    CHECK(parse("*:only=" + name)->rule_count == 0);
    CHECK(parse("*:not=" + name)->rule_count == 1);
    CHECK(warnings.empty());
}

TEST_CASE("lock_that_does_not_fit_is_reported") {
    std::string text = "%locked";
    for (int i = 0; i < 100; ++i) {
        text += ":size=2M";  // the second and later ones are locked already
    }
    static_cast<void>(parse(text));
    CHECK(warnings.size() == 99);
    static_cast<void>(parse("%locked:" + std::string(300, 'x')));
    REQUIRE(!warnings.empty());
    CHECK(warnings.back().find("too many options") != std::string::npos);
}
