// SPDX-License-Identifier: Apache-2.0
// From words to settings, and the rules between them.
#include "dialects/dialect.hpp"
#include "dialects/mdtest/settings.hpp"
#include "plan/parse.hpp"

#include <algorithm>

namespace sonde::dialects::mdtest {
namespace {

using plan::PlanError;

const Option* by_letter(char letter) {
    const auto found = std::find_if(options().begin(), options().end(),
                                    [letter](const Option& option) { return letter != 0 && option.letter == letter; });
    return found == options().end() ? nullptr : &*found;
}

const Option* by_word(const std::string& word) {
    const auto found = std::find_if(options().begin(), options().end(),
                                    [&word](const Option& option) { return !word.empty() && option.word == word; });
    return found == options().end() ? nullptr : &*found;
}

[[noreturn]] void unknown(const std::string& shown, const std::string& name) {
    const std::string why = why_refused(name);
    throw PlanError(shown + (why.empty() ? " is no option of mdtest; `sonde-engine mdtest -h` lists all" : " " + why));
}

class Parser {
 public:
    explicit Parser(const std::vector<std::string>& words) : words_(words) {}

    Settings read() {
        for (; at_ < words_.size(); ++at_) {
            const std::string& word = words_[at_];
            if (word == "-h" || word == "--help") {
                throw Help(help_text());
            }
            if (word.starts_with("--")) {
                read_word(word.substr(2));
            } else if (word.size() > 1 && word[0] == '-') {
                read_letters(word);
            } else {
                throw PlanError("\"" + word +
                                "\" stands where an option was expected; `sonde-engine mdtest -h` lists all");
            }
        }
        return std::move(settings_);
    }

 private:
    void apply(const Option& option, const std::string& shown, const std::string& value) {
        try {
            option.apply(settings_, value);
        } catch (const PlanError& error) {
            throw PlanError(shown + " " + error.what());
        }
    }

    std::string next_value(const std::string& shown) {
        if (at_ + 1 >= words_.size()) {
            throw PlanError(shown + " needs a value after it");
        }
        return words_[++at_];
    }

    void read_word(const std::string& word) {
        const std::size_t equal = word.find('=');
        const std::string name = word.substr(0, equal);
        const std::string shown = "--" + name;
        const Option* option = by_word(name);
        if (option == nullptr) {
            unknown(shown, name);
        }
        if (!option->takes_value && equal != std::string::npos) {
            throw PlanError(shown + " is a flag and takes no value");
        }
        apply(*option, shown,
              !option->takes_value         ? ""
              : equal == std::string::npos ? next_value(shown)
                                           : word.substr(equal + 1));
    }

    /// -n 4, -n=4, -n4, and flags in a row: -FCu.
    void read_letters(const std::string& word) {
        for (std::size_t i = 1; i < word.size(); ++i) {
            const std::string shown = std::string("-") + word[i];
            const Option* option = by_letter(word[i]);
            if (option == nullptr) {
                unknown(shown, word.substr(i, 1));
            }
            if (!option->takes_value) {
                apply(*option, shown, "");
                continue;
            }
            std::string value = word.substr(i + 1);
            if (value.starts_with("=")) {
                value.erase(0, 1);
            } else if (value.empty()) {
                value = next_value(shown);
            }
            apply(*option, shown, value);
            return;
        }
    }

    const std::vector<std::string>& words_;
    std::size_t at_ = 0;
    Settings settings_;
};

void check_api(const Settings& s) {
    if (s.api == "POSIX" || s.api == "DUMMY") {
        return;
    }
    constexpr const char* known[] = {"MPIIO",    "MMAP",    "AIO",   "HDF5",    "NCMPI", "S3-4c",
                                     "S3-libs3", "S3-curl", "RADOS", "CEPHFS",  "DFS",   "HDFS",
                                     "Gfarm",    "LIBNFS",  "IME",   "FINCHFS", "CHFS",  "PMDK"};
    const bool real = std::any_of(std::begin(known), std::end(known), [&s](const char* one) { return s.api == one; });
    throw PlanError(real ? "-a " + s.api +
                               " is refused: this engine has no operations on names through it; use -a POSIX on a "
                               "mounted file system"
                         : "-a is \"" + s.api + "\", but must be POSIX or DUMMY");
}

void check_together(const Settings& s) {
    const auto refuse = [](const char* text) { throw PlanError(text); };
    if (s.no_barriers != 0) {
        refuse(
            "-B (no barriers) is refused: a phase that begins while another task is in the one before measures both; "
            "mdtest itself ends with an error here");
    }
    if (s.stonewall_s > 0 && s.branching > 1) {
        refuse("-W (stonewall) needs a branching factor of 1 (-b): the items before it must be the first of the tree");
    }
    if (s.shared_file && s.by_first) {
        refuse("-c does not go with -S: files of all are made by all");
    }
    if (s.unique && s.shared_file) {
        refuse("-u does not go with -S: a file of all lies in one tree");
    }
    if (s.directory.find('@') != std::string::npos) {
        refuse(
            "-d with several directories (@) is refused: a run writes below one directory; start one run for each, or "
            "name the directory above them");
    }
    if (s.directory.empty()) {
        refuse("-d must name a directory");
    }
    if (s.items > 0 && s.items_per_dir > 0 && s.unique) {
        refuse("-n and -I exclude each other with -u: say how many items a task or how many a directory");
    }
    if (s.items > 0 && s.items_per_dir > 0 && s.items % s.items_per_dir != 0) {
        refuse("-n must be a multiple of -I: it then means n / I test directories");
    }
    if (s.items == 0 && s.items_per_dir == 0) {
        refuse("how many items: give -n (of each task) or -I (of each task in each directory)");
    }
    if (s.make_node && s.write_bytes > 0) {
        refuse("-k does not go with -w: mknod opens nothing that could be written to");
    }
    if (s.verify_read && s.read_bytes == 0) {
        refuse("-X (verify) needs -e: how many bytes to read");
    }
    if (s.verify_read && !s.read && !s.all_phases()) {
        refuse("-X (verify) needs -E: it verifies what is read");
    }
    if ((s.all_phases() || (s.create && s.read)) && s.read_bytes > s.write_bytes) {
        refuse("-e must not be more than -w: files hold what was written");
    }
    if (s.last > 0 && s.first > s.last) {
        refuse("-f is more than -l: the first number of tasks must not be above the last");
    }
    if (s.write_bytes > (1ULL << 30U) || s.read_bytes > (1ULL << 30U)) {
        refuse("-w and -e must not be more than 1 GiB: for large files use the dialect ior, or a plan");
    }
}

}  // namespace

Settings read_words(const std::vector<std::string>& words) {
    Settings s = Parser(words).read();
    check_api(s);
    check_together(s);
    if (s.all_phases()) {
        s.create = s.stat = s.read = s.remove = s.rename = true;
    }
    if (!s.files && !s.directories) {
        s.files = s.directories = true;
    }
    if (s.shared_file) {
        s.directories = false;
        s.files = true;
    }
    if (s.read && s.files && s.read_bytes == 0) {
        s.warnings.emplace_back("Read bytes is 0, thus, a read test will actually just open/close");
    }
    if (s.warnings_are_errors && !s.warnings.empty()) {
        throw PlanError("--warningAsErrors: " + s.warnings.front());
    }
    return s;
}

}  // namespace sonde::dialects::mdtest
