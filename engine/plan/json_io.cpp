// SPDX-License-Identifier: Apache-2.0
#include "plan/json_io.hpp"

namespace sonde::plan {
namespace {

template <class Json>
std::string serialize(const Json& value, JsonEncoding encoding, int indent) {
    const auto invalid =
        encoding == JsonEncoding::strict_utf8 ? Json::error_handler_t::strict : Json::error_handler_t::replace;
    return value.dump(indent, ' ', encoding == JsonEncoding::ascii, invalid);
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const nlohmann::json::parser_callback_t& filter) {
    return nlohmann::json::parse(text, filter);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text) {
    return nlohmann::ordered_json::parse(text);
}

nlohmann::json parse_json_or_discard(std::string_view text) {
    return nlohmann::json::parse(text, nullptr, false);
}

std::string serialize_json(const nlohmann::json& value, JsonEncoding encoding, int indent) {
    return serialize(value, encoding, indent);
}

std::string serialize_json(const nlohmann::ordered_json& value, JsonEncoding encoding, int indent) {
    return serialize(value, encoding, indent);
}

}  // namespace sonde::plan
