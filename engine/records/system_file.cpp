// SPDX-License-Identifier: Apache-2.0
// Parses numbers of /proc and /sys.
#include "records/system_file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <charconv>

#include <array>

namespace sonde::records {

namespace {

std::string_view trim(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::optional<std::uint64_t> parse_whole_number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

}  // namespace

std::string read_system_file(const std::string& path) {
    // Not an ifstream, because /proc files have no size and reads may fail midway.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return {};
    }
    std::string text;
    std::array<char, 8192> piece{};
    for (ssize_t got = 0; (got = ::read(descriptor, piece.data(), piece.size())) > 0;) {
        text.append(piece.data(), static_cast<std::size_t>(got));
    }
    ::close(descriptor);
    return text;
}

std::optional<std::string> read_system_text(const std::string& path) {
    const std::string text = read_system_file(path);
    const std::string_view word = trim(text);
    return word.empty() ? std::nullopt : std::optional<std::string>(word);
}

std::optional<std::uint64_t> read_system_number(const std::string& path) {
    const std::string text = read_system_file(path);
    return parse_whole_number(trim(text));
}

std::optional<std::uint64_t> find_bytes(std::string_view text, std::string_view name) {
    for (std::size_t position = 0; position < text.size();) {
        const std::size_t end = std::min(text.find('\n', position), text.size());
        const std::string_view line = text.substr(position, end - position);
        position = end + 1;
        if (line.size() <= name.size() || line.substr(0, name.size()) != name || line[name.size()] != ':') {
            continue;
        }
        std::string_view value = trim(line.substr(name.size() + 1));
        const bool kilobytes = value.size() > 3 && value.substr(value.size() - 3) == " kB";
        if (kilobytes) {
            value.remove_suffix(3);
        }
        const auto count = parse_whole_number(trim(value));
        return count && kilobytes ? std::optional(*count * 1024) : count;
    }
    return std::nullopt;
}

std::string read_bracketed_choice(const std::string& word) {
    const std::size_t open = word.find('[');
    const std::size_t close = word.find(']', open == std::string::npos ? 0 : open);
    if (open == std::string::npos || close == std::string::npos) {
        return word;
    }
    return word.substr(open + 1, close - open - 1);
}

}  // namespace sonde::records
