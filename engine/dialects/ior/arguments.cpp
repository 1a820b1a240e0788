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
using Takes = IorOption::Takes;

[[noreturn]] void unknown(const std::string& shown, const std::string& name) {
    const std::string why = why_refused(name);
    throw PlanError(why.empty() ? "there is no option " + shown + "; `sonde-engine ior -h` lists all"
                                : shown + " " + why);
}

/// The words one after the other.
class ArgumentReader {
 public:
    explicit ArgumentReader(const std::vector<std::string>& words) : words_(words) {}
    bool any() const { return at_ < words_.size(); }
    const std::string& take() { return words_[at_++]; }

 private:
    const std::vector<std::string>& words_;
    std::size_t at_ = 0;
};

class Parser {
 public:
    explicit Parser(const std::vector<std::string>& words) : words_(words) {}

    void run() {
        while (words_.any()) {
            const std::string word = words_.take();
            if (word == "-h" || word == "--help") {
                throw Help(help_text());
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
    std::string value_for(const std::string& shown, const std::optional<std::string>& given) {
        if (given && !given->empty()) {
            return *given;
        }
        if (given || !words_.any()) {
            throw PlanError(shown + " needs a value after it");
        }
        return words_.take();
    }

    void apply(const IorOption& option, const std::string& shown, const std::optional<std::string>& given) {
        try {
            if (option.takes == Takes::value) {
                option.apply(settings, value_for(shown, given));
            } else {
                raise(option, given);
            }
        } catch (const PlanError& error) {
            const std::string what = error.what();
            throw PlanError(what.starts_with("a ") || what.starts_with("the number") ? shown + ": " + what : what);
        }
    }

    /// A flag without a number counts up: -z -z is 2.
    void raise(const IorOption& option, const std::optional<std::string>& given) {
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
        option.apply(settings, given ? *given : std::to_string(level));
    }

    void read_long(const std::string& word) {
        const std::size_t equal = word.find('=');
        const std::string name = word.substr(2, equal == std::string::npos ? equal : equal - 2);
        const IorOption* option = by_word(name);
        if (option == nullptr) {
            unknown("--" + name, name);
        }
        apply(*option, "--" + name, equal == std::string::npos ? std::nullopt : std::optional(word.substr(equal + 1)));
    }

    /// -t 4k, -t=4k, -t4k, and flags in a row: -wrk.
    void read_short(const std::string& word) {
        for (std::size_t i = 1; i < word.size(); ++i) {
            const std::string shown = std::string("-") + word[i];
            const std::string rest = word.substr(i + 1);
            const std::optional<std::string> given = rest.empty()            ? std::nullopt
                                                     : rest.starts_with('=') ? std::optional(rest.substr(1))
                                                                             : std::optional(rest);
            if (word[i] == 'O') {
                apply_directives(settings, value_for(shown, given), "-O");
                return;
            }
            if (word[i] == 'f') {
                script = value_for(shown, given);
                return;
            }
            const IorOption* option = by_letter(word[i]);
            if (option == nullptr) {
                unknown(shown, std::string(1, word[i]));
            }
            if (option->takes == Takes::value) {
                apply(*option, shown, given);
                return;
            }
            const bool with_number = rest.starts_with('=');
            apply(*option, shown, with_number ? given : std::nullopt);
            if (with_number) {
                return;
            }
        }
    }

    ArgumentReader words_;
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
        const std::string one = trimmed(text.substr(from, comma - from));
        from = comma + 1;
        if (one.empty()) {
            continue;
        }
        const std::size_t equal = one.find('=');
        const std::string key = trimmed(std::string_view(one).substr(0, equal));
        const std::string value =
            equal == std::string::npos ? std::string() : trimmed(std::string_view(one).substr(equal + 1));
        if (key.empty() || value.empty()) {
            throw PlanError(where + ": \"" + one + "\" is not of the form key=value");
        }
        const IorOption* option = by_directive(key);
        if (option == nullptr) {
            unknown(where + " " + key, key);
        }
        try {
            option->apply(settings, value);
        } catch (const PlanError& error) {
            throw PlanError(where + " " + key + ": " + error.what());
        }
    }
}

std::vector<IorSettings> read_words(const std::vector<std::string>& words) {
    Parser parser(words);
    parser.settings.hints = hints_of_environment();
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
