// SPDX-License-Identifier: Apache-2.0
// JSON values from text, and text from JSON values. Parser and serializer of the JSON library are templates that every
// file which calls them compiles again, three seconds each: only json_io.cpp calls them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sonde::plan {

/// Encoding of text that is not ASCII.
enum class JsonEncoding {
    utf8,         ///< bytes that are not UTF-8 become U+FFFD
    strict_utf8,  ///< bytes that are not UTF-8 throw nlohmann::json::type_error
    ascii         ///< as \uXXXX; bytes that are not UTF-8 become U+FFFD
};

/// Throws nlohmann::json::parse_error for text that is not JSON. `filter` is called as json::parse() says.
nlohmann::json parse_json(std::string_view text, const nlohmann::json::parser_callback_t& filter = nullptr);
/// The same, with members in the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text);
/// A value that is_discarded() for text that is not JSON.
nlohmann::json parse_json_or_discard(std::string_view text);

/// In one line when `indent` is negative.
std::string serialize_json(const nlohmann::json& value, JsonEncoding encoding = JsonEncoding::utf8, int indent = -1);
std::string serialize_json(const nlohmann::ordered_json& value, JsonEncoding encoding = JsonEncoding::utf8,
                           int indent = -1);

}  // namespace sonde::plan
