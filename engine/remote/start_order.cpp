// SPDX-License-Identifier: Apache-2.0
#include "remote/start_order.hpp"

#include "ranks/team_error.hpp"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <string_view>

namespace sonde::remote {
namespace {

constexpr std::string_view greeting_begin = "sonde-engine ";
constexpr std::string_view greeting_end = " waits for its start order";

/// Texts with a zero byte after each: neither arguments nor variables contain one.
class TextReader {
 public:
    explicit TextReader(const std::string& text) : text_(text) {}

    std::string take_text() {
        const std::size_t end = text_.find('\0', begin_);
        if (end == std::string::npos) {
            throw ranks::TeamError("the start order of another host is not complete");
        }
        std::string part = text_.substr(begin_, end - begin_);
        begin_ = end + 1;
        return part;
    }
    int take_number() {
        const std::string part = take_text();
        int value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (error != std::errc() || end != part.data() + part.size() || value < 0) {
            throw ranks::TeamError("the start order of another host has \"" + part + "\" where a number must be");
        }
        return value;
    }
    std::vector<std::string> take_texts() {
        std::vector<std::string> parts(static_cast<std::size_t>(std::min(take_number(), 1 << 20)));
        for (std::string& part : parts) {
            part = take_text();
        }
        return parts;
    }

 private:
    const std::string& text_;
    std::size_t begin_ = 0;
};

void add(std::string& text, const std::string& part) {
    text.append(part.c_str(), part.size() + 1);
}

void add(std::string& text, const std::vector<std::string>& parts) {
    add(text, std::to_string(parts.size()));
    for (const std::string& part : parts) {
        add(text, part);
    }
}

}  // namespace

std::string serialize(const StartOrder& order) {
    std::string text;
    for (const int number : {order.first_process, order.process_count, order.processes, order.nodes}) {
        add(text, std::to_string(number));
    }
    for (const std::string* part : {&order.host, &order.job, &order.directory}) {
        add(text, *part);
    }
    add(text, order.command);
    add(text, order.variables);
    return text;
}

StartOrder parse_start_order(const std::string& text) {
    TextReader reader(text);
    StartOrder order;
    for (int* number : {&order.first_process, &order.process_count, &order.processes, &order.nodes}) {
        *number = reader.take_number();
    }
    for (std::string* part : {&order.host, &order.job, &order.directory}) {
        *part = reader.take_text();
    }
    order.command = reader.take_texts();
    order.variables = reader.take_texts();
    return order;
}

std::string node_greeting() {
    return std::string(greeting_begin) + SONDE_VERSION + std::string(greeting_end);
}

std::string read_version(const std::string& line) {
    if (!line.starts_with(greeting_begin) || !line.ends_with(greeting_end)) {
        return {};
    }
    return line.substr(greeting_begin.size(), line.size() - greeting_begin.size() - greeting_end.size());
}

std::string engine_path() {
    std::array<char, PATH_MAX> path{};
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
    return length > 0 ? path.data() : "sonde-engine";
}

std::vector<int> divide_processes(int processes, int hosts) {
    std::vector<int> counts(static_cast<std::size_t>(hosts), processes / hosts);
    for (int i = 0; i < processes % hosts; ++i) {
        ++counts[static_cast<std::size_t>(i)];
    }
    return counts;
}

}  // namespace sonde::remote
