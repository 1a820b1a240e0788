// SPDX-License-Identifier: Apache-2.0
// Knows UTF-8 as Unicode defines it (table 3-7, well-formed byte sequences).
#include "records/text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace sonde::records {

namespace {

/// In whose name complain() speaks.
const char*& speaker() {
    static const char* name = "sonde-engine";
    return name;
}

constexpr char digits[] = "0123456789abcdef";

void append_escaped(std::string& out, unsigned char byte) {
    out += "\\x";
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
}

struct Lead {
    std::size_t length;       ///< bytes of the sequence, 0 = not a lead byte
    unsigned char low, high;  ///< range of the second byte: excludes overlong forms and surrogates
};

Lead lead(unsigned char byte) {
    if (byte >= 0xC2 && byte <= 0xDF) {
        return {2, 0x80, 0xBF};
    }
    if (byte >= 0xE0 && byte <= 0xEF) {
        return {3, static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
                static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
    }
    if (byte >= 0xF0 && byte <= 0xF4) {
        return {4, static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
                static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
    }
    return {0, 0, 0};
}

/// Length of the well-formed multi-byte sequence at `at`, 0 when there is none.
std::size_t sequence(std::string_view bytes, std::size_t at) {
    const Lead first = lead(static_cast<unsigned char>(bytes[at]));
    if (first.length == 0 || at + first.length > bytes.size()) {
        return 0;
    }
    for (std::size_t i = 1; i < first.length; ++i) {
        const auto byte = static_cast<unsigned char>(bytes[at + i]);
        const unsigned char low = i == 1 ? first.low : 0x80;
        const unsigned char high = i == 1 ? first.high : 0xBF;
        if (byte < low || byte > high) {
            return 0;
        }
    }
    return first.length;
}

int hex_value(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

}  // namespace

std::string json_text(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const auto byte = static_cast<unsigned char>(bytes[at]);
        if (byte < 0x80) {
            const bool ambiguous = byte == '\\' && at + 1 < bytes.size() && bytes[at + 1] == 'x';
            if (ambiguous) {
                append_escaped(out, byte);
            } else {
                out += bytes[at];
            }
            ++at;
        } else if (const std::size_t length = sequence(bytes, at); length > 0) {
            out += bytes.substr(at, length);
            at += length;
        } else {
            append_escaped(out, byte);
            ++at;
        }
    }
    return out;
}

std::string bytes_of(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        if (at + 3 < text.size() && text[at] == '\\' && text[at + 1] == 'x') {
            const int high = hex_value(text[at + 2]);
            const int low = hex_value(text[at + 3]);
            if (high >= 0 && low >= 0) {
                out += static_cast<char>(high * 16 + low);
                at += 4;
                continue;
            }
        }
        out += text[at];
        ++at;
    }
    return out;
}

std::string one_line(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    // U+0080 ... U+009F drive a terminal as well.
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        const auto next = static_cast<unsigned char>(text[i + 1]);
        if (static_cast<unsigned char>(text[i]) == 0xc2 && next >= 0x80 && next <= 0x9f) {
            text.replace(i, 2, "?");
        }
    }
    return text;
}

void speak_as(const char* name) {
    speaker() = name;
}

void complain(const std::string& sentence) {
    const std::string line = std::string(speaker()) + ": " + one_line(sentence) + "\n";
    std::fflush(stdout);  // in the order in which a reader of both streams would want them
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace sonde::records
