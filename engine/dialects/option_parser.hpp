// SPDX-License-Identifier: Apache-2.0
// Words in the manner of mdtest and md-workbench: -n 4, -n=4, -n4, --word=4, --word 4, and flags in a row (-FCu).
#pragma once

#include "dialects/dialect.hpp"
#include "plan/plan_error.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace sonde::dialects {

/// One option of a tool whose settings are S.
template <class S>
struct ToolOption {
    char letter = 0;             ///< 0: a word only
    const char* long_name = "";  ///< "": a letter only
    bool takes_value = false;
    const char* help = "";
    /// `value` is empty for flags. Throws plan::PlanError with what follows the option's name in a sentence.
    void (*apply)(S& settings, const std::string& value) = nullptr;
};

/// A tool's own options, and those of interfaces that are never in use here: the tools read them whatever -a says, and
/// then they have no effect either.
template <class S>
std::vector<ToolOption<S>> with_idle_options(std::vector<ToolOption<S>> options) {
    for (const auto& [word, takes_value] :
         std::initializer_list<std::pair<const char*, bool>>{{"mpiio.showHints", false},
                                                             {"mpiio.preallocate", false},
                                                             {"mpiio.useStridedDatatype", false},
                                                             {"mpiio.useFileView", false},
                                                             {"mpiio.hintsFileName", true},
                                                             {"hdf5.showHints", false},
                                                             {"hdf5.hintsFileName", true},
                                                             {"hdf5.collectiveMetadata", false},
                                                             {"hdf5.individualDataSets", false},
                                                             {"hdf5.setAlignment", true},
                                                             {"hdf5.noFill", false},
                                                             {"hdf5.chunkSize", true},
                                                             {"ncmpi.showHints", false},
                                                             {"ncmpi.hintsFileName", true},
                                                             {"ncmpi.preallocate", false},
                                                             {"ncmpi.useStridedDatatype", false},
                                                             {"ncmpi.useFileView", false},
                                                             {"mmap.madv_dont_need", false},
                                                             {"mmap.madv_pattern", false},
                                                             {"aio.max-pending", true},
                                                             {"aio.granularity", true}}) {
        options.push_back(
            {0, word, takes_value, "of another interface: without effect here", [](S&, const std::string&) {}});
    }
    return options;
}

/// Name, options and operands of a tool.
template <class S>
struct OptionLanguage {
    const char* tool;
    const std::vector<ToolOption<S>>& options;
    std::string (*explain_refusal)(const std::string& name);  ///< empty: the tool does not have it either
};

template <class S>
std::string format_help(const OptionLanguage<S>& language) {
    const std::string tool = language.tool;
    std::string text = "sonde-engine " + tool + ": " + tool +
                       "'s command line, done by Sonde's engine. Under mpiexec or srun, or alone.\n";
    for (const bool values : {false, true}) {
        text += values ? "\nWith a value (-n 10, -n=10 or -n10):\n" : "\nFlags, which may be joined (-FCu):\n";
        for (const ToolOption<S>& option : language.options) {
            if (option.takes_value != values) {
                continue;
            }
            std::string names = option.letter != 0 ? std::string("-") + option.letter : std::string();
            if (*option.long_name != '\0') {
                names += (names.empty() ? "" : ", ") + std::string("--") + option.long_name;
            }
            names.resize(std::max<std::size_t>(names.size() + 1, 30), ' ');
            text += "  " + names + option.help + "\n";
        }
    }
    text.pop_back();
    return text;
}

template <class S>
class ArgumentParser {
 public:
    ArgumentParser(const OptionLanguage<S>& language, const std::vector<std::string>& arguments)
        : language_(language), arguments_(arguments) {}

    /// Throws plan::PlanError with one sentence, or Help.
    S read() {
        for (; position_ < arguments_.size(); ++position_) {
            const std::string& word = arguments_[position_];
            if (word == "-h" || word == "--help") {
                throw HelpRequested(format_help(language_));
            }
            if (word.starts_with("--")) {
                read_word(word.substr(2));
            } else if (word.size() > 1 && word[0] == '-') {
                read_letters(word);
            } else {
                throw plan::PlanError("\"" + word + "\" stands where an option was expected; " + where_to_look());
            }
        }
        return std::move(settings_);
    }

 private:
    std::string where_to_look() const { return std::string("`sonde-engine ") + language_.tool + " -h` lists all"; }

    template <class Fits>
    const ToolOption<S>& find(const std::string& spelling, const std::string& name, Fits fits) const {
        const auto& options = language_.options;
        const auto match = std::find_if(options.begin(), options.end(), fits);
        if (match == options.end()) {
            const std::string why = language_.explain_refusal(name);
            throw plan::PlanError(
                spelling +
                (why.empty() ? std::string(" is no option of ") + language_.tool + "; " + where_to_look() : " " + why));
        }
        return *match;
    }

    void apply(const ToolOption<S>& option, const std::string& spelling, const std::string& value) {
        try {
            option.apply(settings_, value);
        } catch (const plan::PlanError& error) {
            throw plan::PlanError(spelling + " " + error.what());
        }
    }

    std::string next_value(const std::string& spelling) {
        if (position_ + 1 >= arguments_.size()) {
            throw plan::PlanError(spelling + " needs a value after it");
        }
        return arguments_[++position_];
    }

    /// A flag may be said to be off (-F=0) or on (-F=1).
    void raise(const ToolOption<S>& option, const std::string& spelling, const std::string& number) {
        if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) {
            throw plan::PlanError(spelling + " is a flag: leave the value out, or give 0 or 1");
        }
        if (number.find_first_not_of('0') != std::string::npos) {
            apply(option, spelling, "");
        }
    }

    void read_word(const std::string& word) {
        const std::size_t equal = word.find('=');
        const std::string name = word.substr(0, equal);
        const std::string spelling = "--" + name;
        const ToolOption<S>& option = find(spelling, name, [&name](const ToolOption<S>& candidate) {
            return !name.empty() && candidate.long_name == name;
        });
        if (!option.takes_value) {
            raise(option, spelling, equal == std::string::npos ? "1" : word.substr(equal + 1));
        } else {
            apply(option, spelling, equal == std::string::npos ? next_value(spelling) : word.substr(equal + 1));
        }
    }

    void read_letters(const std::string& word) {
        for (std::size_t i = 1; i < word.size(); ++i) {
            const char letter = word[i];
            const std::string spelling = std::string("-") + letter;
            const ToolOption<S>& option =
                find(spelling, std::string(1, letter),
                     [letter](const ToolOption<S>& candidate) { return candidate.letter == letter; });
            std::string value = word.substr(i + 1);
            const bool equals = value.starts_with('=');
            if (!option.takes_value) {
                raise(option, spelling, equals ? value.substr(1) : "1");
                if (equals) {
                    return;
                }
                continue;
            }
            if (equals) {
                value.erase(0, 1);
            } else if (value.empty()) {
                value = next_value(spelling);
            }
            apply(option, spelling, value);
            return;
        }
    }

    const OptionLanguage<S>& language_;
    const std::vector<std::string>& arguments_;
    std::size_t position_ = 0;
    S settings_;
};

}  // namespace sonde::dialects
