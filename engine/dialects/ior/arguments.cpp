// SPDX-License-Identifier: Apache-2.0
#include "dialects/ior/arguments.hpp"

#include "dialects/dialect.hpp"
#include "dialects/ior/hints.hpp"
#include "dialects/ior/options.hpp"
#include "plan/plan_error.hpp"

#include <optional>
#include <string_view>

namespace sonde::dialects::ior {
namespace {

using plan::PlanError;
using Takes = IorOption::ArgumentCount;

[[noreturn]] void throw_unknown_option(const std::string& spelling, const std::string& name) {
    const std::string why = explain_refusal(name);
    throw PlanError(why.empty() ? "there is no option " + spelling + "; `sonde-engine ior -h` lists all"
                                : spelling + " " + why);
}

/// The words one after the other.
class ArgumentReader {
 public:
    explicit ArgumentReader(const std::vector<std::string>& arguments) : arguments_(arguments) {}
    bool has_more() const { return position_ < arguments_.size(); }
    const std::string& take_argument() { return arguments_[position_++]; }

 private:
    const std::vector<std::string>& arguments_;
    std::size_t position_ = 0;
};

class Parser {
 public:
    explicit Parser(const std::vector<std::string>& arguments) : arguments_(arguments) {}

    void run() {
        while (arguments_.has_more()) {
            const std::string word = arguments_.take_argument();
            if (word == "-h" || word == "--help") {
                throw HelpRequested(help_text());
            }
            if (word.starts_with("--")) {
                read_long(word);
            } else if (word.size() > 1 && word[0] == '-') {
                read_short(word);
            } else {
                throw PlanError("\"" + word +
                                "\" stands where an option was expected; `sonde-engine ior -h` lists all");
            }
        }
    }

    IorSettings settings;
    std::string script;

 private:
    std::string take_option_value(const std::string& spelling, const std::optional<std::string>& value) {
        if (value && !value->empty()) {
            return *value;
        }
        if (value || !arguments_.has_more()) {
            throw PlanError(spelling + " needs a value after it");
        }
        return arguments_.take_argument();
    }

    void apply(const IorOption& option, const std::string& spelling, const std::optional<std::string>& value) {
        try {
            if (option.argument_count == Takes::value) {
                option.apply(settings, take_option_value(spelling, value));
            } else {
                raise(option, value);
            }
        } catch (const PlanError& error) {
            const std::string message = error.what();
            throw PlanError(message.starts_with("a ") || message.starts_with("the number") ? spelling + ": " + message
                                                                                           : message);
        }
    }

    /// A flag without a number counts up: -z -z is 2.
    void raise(const IorOption& option, const std::optional<std::string>& value) {
        int level = 1;
        if (option.letter == 'z') {
            level += settings.random_offset;
        } else if (option.letter == 'Z') {
            level += settings.reorder_random;
        } else if (option.letter == 'C') {
            level += settings.reorder;
        } else if (option.letter == 'v') {
            level += settings.verbose;
        }
        option.apply(settings, value ? *value : std::to_string(level));
    }

    void read_long(const std::string& word) {
        const std::size_t equal = word.find('=');
        const std::string name = word.substr(2, equal == std::string::npos ? equal : equal - 2);
        const IorOption* option = find_by_long_name(name);
        if (option == nullptr) {
            throw_unknown_option("--" + name, name);
        }
        apply(*option, "--" + name, equal == std::string::npos ? std::nullopt : std::optional(word.substr(equal + 1)));
    }

    /// -t 4k, -t=4k, -t4k, and flags in a row: -wrk.
    void read_short(const std::string& word) {
        for (std::size_t i = 1; i < word.size(); ++i) {
            const std::string spelling = std::string("-") + word[i];
            const std::string remainder = word.substr(i + 1);
            const std::optional<std::string> value = remainder.empty()            ? std::nullopt
                                                     : remainder.starts_with('=') ? std::optional(remainder.substr(1))
                                                                                  : std::optional(remainder);
            if (word[i] == '-' && i > 1 && !remainder.empty()) {
                continue;  // -z-k is -z -k in IOR too
            }
            if (word[i] == 'O') {
                apply_directives(settings, take_option_value(spelling, value), "-O");
                return;
            }
            if (word[i] == 'f') {
                script = take_option_value(spelling, value);
                return;
            }
            const IorOption* option = find_by_letter(word[i]);
            if (option == nullptr) {
                throw_unknown_option(spelling, std::string(1, word[i]));
            }
            if (option->argument_count == Takes::value) {
                apply(*option, spelling, value);
                return;
            }
            const bool with_number = remainder.starts_with('=');
            apply(*option, spelling, with_number ? value : std::nullopt);
            if (with_number) {
                return;
            }
        }
    }

    ArgumentReader arguments_;
};

}  // namespace

void apply_directives(IorSettings& settings, const std::string& line, const std::string& where) {
    const auto trimmed = [](std::string_view text) {
        const std::size_t first = text.find_first_not_of(" \t\r\n");
        const std::size_t last = text.find_last_not_of(" \t\r\n");
        return std::string(first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1));
    };
    const std::string_view text = std::string_view(line).substr(0, line.find('#'));
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t comma = std::min(text.find(',', from), text.size());
        const std::string directive = trimmed(text.substr(from, comma - from));
        from = comma + 1;
        if (directive.empty()) {
            continue;
        }
        const std::size_t equal = directive.find('=');
        const std::string key = trimmed(std::string_view(directive).substr(0, equal));
        const std::string value =
            equal == std::string::npos ? std::string() : trimmed(std::string_view(directive).substr(equal + 1));
        if (key.empty() || value.empty()) {
            throw PlanError(where + ": \"" + directive + "\" is not of the form key=value");
        }
        const IorOption* option = find_by_directive(key);
        if (option == nullptr) {
            throw_unknown_option(where + " " + key, key);
        }
        try {
            option->apply(settings, value);
        } catch (const PlanError& error) {
            throw PlanError(where + " " + key + ": " + error.what());
        }
    }
}

std::vector<IorSettings> parse_arguments(const std::vector<std::string>& arguments) {
    Parser parser(arguments);
    parser.settings.hints = read_hints_of_environment();
    parser.run();
    std::vector<IorSettings> tests =
        parser.script.empty() ? std::vector<IorSettings>{parser.settings} : read_script(parser.script, parser.settings);
    for (IorSettings& test : tests) {
        if (!test.write && !test.read && !test.check_write && !test.check_read) {
            test.write = test.read = true;
        }
    }
    return tests;
}

}  // namespace sonde::dialects::ior
