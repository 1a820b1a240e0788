// SPDX-License-Identifier: Apache-2.0
// UTF-8 as in the Unicode Standard, table 3-7 (well-formed byte sequences).
#include "records/text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace sonde::records {

namespace {

/// Program name of print_error().
const char*& program_name() {
    static const char* name = "sonde-engine";
    return name;
}

constexpr char digits[] = "0123456789abcdef";

void append_escaped(std::string& out, unsigned char byte) {
    out += "\\x";
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
}

struct LeadByte {
    std::size_t length;       ///< bytes of the sequence, 0 = not a lead byte
    unsigned char low, high;  ///< range of the second byte: excludes overlong forms and surrogates
};

LeadByte decode_lead_byte(unsigned char byte) {
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
std::size_t sequence_length(std::string_view bytes, std::size_t position) {
    const LeadByte first = decode_lead_byte(static_cast<unsigned char>(bytes[position]));
    if (first.length == 0 || position + first.length > bytes.size()) {
        return 0;
    }
    for (std::size_t i = 1; i < first.length; ++i) {
        const auto byte = static_cast<unsigned char>(bytes[position + i]);
        const unsigned char low = i == 1 ? first.low : 0x80;
        const unsigned char high = i == 1 ? first.high : 0xBF;
        if (byte < low || byte > high) {
            return 0;
        }
    }
    return first.length;
}

int parse_hex_digit(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

}  // namespace

std::string to_json_text(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (std::size_t position = 0; position < bytes.size();) {
        const auto byte = static_cast<unsigned char>(bytes[position]);
        if (byte < 0x80) {
            const bool ambiguous = byte == '\\' && position + 1 < bytes.size() && bytes[position + 1] == 'x';
            if (ambiguous) {
                append_escaped(out, byte);
            } else {
                out += bytes[position];
            }
            ++position;
        } else if (const std::size_t length = sequence_length(bytes, position); length > 0) {
            out += bytes.substr(position, length);
            position += length;
        } else {
            append_escaped(out, byte);
            ++position;
        }
    }
    return out;
}

std::string from_json_text(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t position = 0; position < text.size();) {
        if (position + 3 < text.size() && text[position] == '\\' && text[position + 1] == 'x') {
            const int high = parse_hex_digit(text[position + 2]);
            const int low = parse_hex_digit(text[position + 3]);
            if (high >= 0 && low >= 0) {
                out += static_cast<char>(high * 16 + low);
                position += 4;
                continue;
            }
        }
        out += text[position];
        ++position;
    }
    return out;
}

std::string to_single_line(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    // U+0080 … U+009F are control characters too.
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        const auto next = static_cast<unsigned char>(text[i + 1]);
        if (static_cast<unsigned char>(text[i]) == 0xc2 && next >= 0x80 && next <= 0x9f) {
            text.replace(i, 2, "?");
        }
    }
    return text;
}

void set_program_name(const char* name) {
    program_name() = name;
}

void print_error(const std::string& sentence) {
    const std::string line = std::string(program_name()) + ": " + to_single_line(sentence) + "\n";
    std::fflush(stdout);  // keeps the order of both streams
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace sonde::records
