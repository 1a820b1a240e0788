// SPDX-License-Identifier: Apache-2.0
#include "system/text.hpp"

namespace sonde::system {

namespace {

/// Returns the length of the well-formed UTF-8 sequence at `bytes`, or 0.
std::size_t count_utf8_sequence_bytes(const unsigned char* bytes) noexcept {
    const unsigned first = bytes[0];
    const std::size_t length = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((bytes[i] & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    const bool wrong = (first == 0xE0 && bytes[1] < 0xA0) || (first == 0xED && bytes[1] > 0x9F) ||
                       (first == 0xF0 && bytes[1] < 0x90) || (first == 0xF4 && bytes[1] > 0x8F);
    return wrong ? 0 : length;
}

}  // namespace

Text& Text::json(const char* text) noexcept {
    *this << '"';
    const auto* bytes = reinterpret_cast<const unsigned char*>(text);
    while (*bytes != 0) {
        const std::size_t length = count_utf8_sequence_bytes(bytes);
        if (*bytes == '"' || *bytes == '\\') {
            *this << '\\' << static_cast<char>(*bytes);
        } else if (*bytes < 0x20) {
            const char* hex = "0123456789abcdef";
            *this << "\\u00" << hex[*bytes >> 4U] << hex[*bytes & 15U];
        } else if (length == 0) {
            *this << "\\ufffd";
        } else {
            add(reinterpret_cast<const char*>(bytes), length);
        }
        bytes += length == 0 ? 1 : length;
    }
    return *this << '"';
}

}  // namespace sonde::system
