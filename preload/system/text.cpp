// SPDX-License-Identifier: Apache-2.0
#include "system/text.hpp"

namespace sonde::system {

namespace {

/// Length of the well-formed UTF-8 sequence at `at`, or 0.
std::size_t sequence(const unsigned char* at) noexcept {
    const unsigned first = at[0];
    const std::size_t length = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((at[i] & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    const bool wrong = (first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] > 0x9F) ||
                       (first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] > 0x8F);
    return wrong ? 0 : length;
}

}  // namespace

Text& Text::json(const char* text) noexcept {
    *this << '"';
    const auto* at = reinterpret_cast<const unsigned char*>(text);
    while (*at != 0) {
        const std::size_t length = sequence(at);
        if (*at == '"' || *at == '\\') {
            *this << '\\' << static_cast<char>(*at);
        } else if (*at < 0x20) {
            const char* hex = "0123456789abcdef";
            *this << "\\u00" << hex[*at >> 4U] << hex[*at & 15U];
        } else if (length == 0) {
            *this << "\\ufffd";
        } else {
            add(reinterpret_cast<const char*>(at), length);
        }
        at += length == 0 ? 1 : length;
    }
    return *this << '"';
}

}  // namespace sonde::system
