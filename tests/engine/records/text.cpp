// SPDX-License-Identifier: Apache-2.0
// Odd names must neither break the record nor become another name.
#include "records/text.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

using sonde::records::from_json_text;
using sonde::records::to_json_text;
using namespace std::string_literals;

TEST_CASE("valid_utf8_stays_unchanged") {
    for (const std::string& name : {"/scratch/run 1"s, "/daten/größe"s, "/データ/測定"s, "emoji \xF0\x9F\x98\x80"s,
                                    "a\\b"s, ""s, "line\nbreak\ttab"s, "nul\0inside"s}) {
        CHECK(to_json_text(name) == name);
    }
}

TEST_CASE("invalid_utf8_becomes_hex_escape") {
    CHECK(to_json_text("caf\xE9") == "caf\\xe9");
    CHECK(to_json_text("\xFF\xFE") == "\\xff\\xfe");
    CHECK(to_json_text("cut \xE3\x83") == "cut \\xe3\\x83");
    CHECK(to_json_text("overlong \xC0\xAF") == "overlong \\xc0\\xaf");
    CHECK(to_json_text("surrogate \xED\xA0\x80") == "surrogate \\xed\\xa0\\x80");
    CHECK(to_json_text("too large \xF4\x90\x80\x80") == "too large \\xf4\\x90\\x80\\x80");
}

TEST_CASE("name_like_an_escape_is_distinguished") {
    CHECK(to_json_text("\\xe9") == "\\x5cxe9");
    CHECK(to_json_text("\\xe9") != to_json_text("\xE9"));
}

TEST_CASE("every_byte_string_survives_json_text") {
    std::mt19937 random(7);
    // Bytes that matter: backslash, x, hex digits, lead and continuation bytes, controls.
    const std::string alphabet = "\\x5cef0/ \n\0\x80\xBF\xC3\xA9\xE2\x82\xAC\xED\xA0\xF0\x9F\x98\x80\xFF"s;
    for (int round = 0; round < 20000; ++round) {
        std::string bytes;
        const auto length = random() % 12;
        for (unsigned i = 0; i < length; ++i) {
            bytes += alphabet[random() % alphabet.size()];
        }
        const std::string text = to_json_text(bytes);
        REQUIRE(from_json_text(text) == bytes);
        REQUIRE_NOTHROW(nlohmann::json(text).dump());
    }
}
