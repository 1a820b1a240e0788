// SPDX-License-Identifier: Apache-2.0
// Parts of a text between two addresses.
#pragma once

#include <cstddef>
#include <cstring>

namespace sonde::settings {

struct TextRange {
    const char* begin;
    std::size_t length;
    bool is(const char* word) const noexcept { return is(word, word + std::strlen(word)); }
    bool is(const char* from, const char* to) const noexcept {
        return static_cast<std::size_t>(to - from) == length && std::strncmp(begin, from, length) == 0;
    }
};

inline bool is_blank(char sign) noexcept {
    return sign == ' ' || sign == '\t' || sign == '\r';
}

inline TextRange trim_blanks(const char* begin, const char* end) noexcept {
    while (begin < end && is_blank(*begin)) {
        ++begin;
    }
    while (end > begin && is_blank(end[-1])) {
        --end;
    }
    return {begin, static_cast<std::size_t>(end - begin)};
}

inline const char* find_character(const char* begin, const char* end, char sign) noexcept {
    while (begin < end && *begin != sign) {
        ++begin;
    }
    return begin;
}

}  // namespace sonde::settings
