// SPDX-License-Identifier: Apache-2.0
#include "settings/glob.hpp"

#include <cstring>

namespace sonde::settings {

namespace {

/// Reads the set that starts after '['. Returns the place after ']', or nullptr when there is none ('[' is a sign
/// then).
const char* match_character_set(const char* next, char sign, bool& inside) noexcept {
    const bool negated = *next == '!' || *next == '^';
    next += negated ? 1 : 0;
    inside = false;
    bool first = true;
    for (; *next != 0 && (first || *next != ']'); first = false) {
        const char low = *next == '\\' && next[1] != 0 ? *++next : *next;
        char high = low;
        if (next[1] == '-' && next[2] != 0 && next[2] != ']') {
            high = next[2];
            next += 2;
        }
        ++next;
        const auto value = static_cast<unsigned char>(sign);
        inside |= static_cast<unsigned char>(low) <= value && value <= static_cast<unsigned char>(high);
    }
    if (*next != ']') {
        return nullptr;
    }
    inside = inside != negated;
    return next + 1;
}

}  // namespace

bool glob_matches(const char* pattern, const char* name) noexcept {
    // Backtracking to the last '*' is enough: it makes all earlier ones irrelevant.
    const char* star = nullptr;
    const char* resume = nullptr;
    while (true) {
        bool matched = false;
        const char* next = pattern + 1;
        if (*pattern == '*') {
            star = ++pattern;
            resume = name;
            continue;
        }
        if (*name == 0) {
            return *pattern == 0;
        }
        if (*pattern == '?') {
            matched = true;
        } else if (*pattern == '[') {
            bool inside = false;
            const char* after = match_character_set(pattern + 1, *name, inside);
            matched = after != nullptr ? inside : *name == '[';
            next = after != nullptr ? after : next;
        } else if (*pattern == '\\' && pattern[1] != 0) {
            matched = pattern[1] == *name;
            next = pattern + 2;
        } else {
            matched = *pattern == *name;
        }
        if (matched) {
            pattern = next;
            ++name;
        } else if (star != nullptr) {
            pattern = star;
            name = ++resume;
        } else {
            return false;
        }
    }
}

bool pattern_covers(const char* pattern, const char* name, const char* absolute) noexcept {
    if (glob_matches(pattern, name) || (absolute != nullptr && glob_matches(pattern, absolute))) {
        return true;
    }
    const char* slash = std::strrchr(name, '/');
    return slash != nullptr && std::strchr(pattern, '/') == nullptr && glob_matches(pattern, slash + 1);
}

bool is_system_path(const char* absolute) noexcept {
    static constexpr const char* roots[] = {
        "/bin/",  "/boot/", "/dev/", "/etc/",      "/lib/",       "/lib32/",   "/lib64/",   "/proc/",   "/run/",
        "/sbin/", "/sys/",  "/usr/", "/opt/cray/", "/var/cache/", "/var/lib/", "/var/log/", "/var/run/"};
    if (std::strncmp(absolute, "/dev/shm/", 9) == 0) {
        return false;  // where people put scratch data
    }
    for (const char* root : roots) {
        if (std::strncmp(absolute, root, std::strlen(root)) == 0) {
            return true;
        }
    }
    return false;
}

}  // namespace sonde::settings
