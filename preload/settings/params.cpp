// SPDX-License-Identifier: Apache-2.0
#include "settings/params.hpp"

#include "settings/glob.hpp"
#include "settings/text_range.hpp"
#include "system/text.hpp"

#include <algorithm>
#include <cstring>

namespace sonde::settings {

namespace {

using system::Text;

void warn_of_piece(Warn warn, const char* before, TextRange piece, const char* after) noexcept {
    Text text;
    text << before;
    text.add(piece.begin, piece.length < 300 ? piece.length : 300);
    text << after << '\0';
    warn(text.data());
}

struct Number {
    const char* name;
    std::uint32_t Rule::*member;
    std::uint32_t min_value;
    std::uint32_t max_value;
};
constexpr Number numbers[] = {{"size", &Rule::buffer_bytes, 512, 1U << 30U},
                              {"count", &Rule::buffer_count, 1, 1U << 16U},
                              {"prefetch", &Rule::prefetch, 0, 256}};
struct Flag {
    const char* name;
    bool Rule::*member;
};
constexpr Flag flags[] = {{"direct", &Rule::direct},
                          {"verbose", &Rule::verbose},
                          {"off", &Rule::is_disabled},
                          {"auto", &Rule::automatic},
                          {"alone", &Rule::is_only_user}};

/// An option with one allowed value, by which the user makes a promise about the files.
struct UserAssurance {
    const char* name;
    const char* word;
    bool Rule::*member;
    const char* before;  ///< of the sentence for any other word than "off"
    const char* after;
};
constexpr UserAssurance user_assurances[] = {
    {"mpiio", "disjoint", &Rule::mpi_disjoint,
     "IOBUF_PARAMS: mpiio= takes \"disjoint\" (no rank writes or reads what another one writes before both have "
     "synchronized) or \"off\", not \"",
     "\"; files that several ranks open by MPI-IO are not buffered."},
    {"stdio", "alone", &Rule::only_stdio_access,
     "IOBUF_PARAMS: stdio= takes \"alone\" (nobody reaches the file but by one stream of the C library, from front to "
     "back) or \"off\", not \"",
     "\"; such streams keep their buffers."}};

/// Returns whether %locked has set the option; if so, prints a warning.
bool is_option_locked_by_site(TextRange name, TextRange option, const Settings& settings, Warn warn) noexcept {
    for (const char* locked = settings.locked; *locked != 0;) {
        const char* end = std::strchr(locked, ':');
        if (name.is(locked, end)) {
            warn_of_piece(
                warn, "IOBUF_PARAMS: the site has set this option in /etc/sonde/iobuf.conf; ignored: ", option, ".");
            return true;
        }
        locked = end + 1;
    }
    return false;
}

/// False: another option.
bool set_user_assurance(TextRange name, TextRange value, Rule& rule, Warn warn) noexcept {
    for (const UserAssurance& promise : user_assurances) {
        if (name.is(promise.name)) {
            rule.*promise.member = value.is(promise.word);
            if (!(rule.*promise.member) && !value.is("off")) {
                warn_of_piece(warn, promise.before, value, promise.after);
            }
            return true;
        }
    }
    return false;
}

/// Options of Cray's library that change nothing here: full pages are always written by the library's threads, the
/// table of earlier accesses has a fixed size, the kernel's cache keeps what a closed file held, and fsync() always
/// means on disk.
bool is_option_without_effect(TextRange name) noexcept {
    return name.is("vbuffer_count") || name.is("preflush") || name.is("lazyclose") || name.is("ignoreflush");
}

bool set_number(TextRange name, TextRange value, TextRange option, Rule& rule, Warn warn) noexcept {
    for (const Number& number : numbers) {
        if (!name.is(number.name)) {
            continue;
        }
        std::uint64_t number_read = 0;
        if (!read_size(value.begin, value.length, number_read)) {
            warn_of_piece(warn, "IOBUF_PARAMS: this value is not a number and is ignored: ", option, ".");
            return true;
        }
        const auto clamped = std::clamp<std::uint64_t>(number_read, number.min_value, number.max_value);
        if (clamped != number_read) {
            warn_of_piece(warn, "IOBUF_PARAMS: the value of ", name,
                          " is outside of what is possible; the nearest possible one is taken.");
        }
        rule.*number.member = static_cast<std::uint32_t>(clamped);
        return true;
    }
    return false;
}

void read_option(TextRange name, TextRange value, TextRange option, Rule& rule, Warn warn) noexcept {
    const bool has_value =
        find_character(option.begin, option.begin + option.length, '=') < option.begin + option.length;
    if (name.length == 0 || is_option_without_effect(name) || set_user_assurance(name, value, rule, warn) ||
        set_number(name, value, option, rule, warn)) {
        return;
    }
    for (const Flag& flag : flags) {
        if (name.is(flag.name)) {
            const bool is_off = value.is("0") || value.is("off") || value.is("no");
            if (has_value && !is_off && !value.is("1") && !value.is("on") && !value.is("yes")) {
                warn_of_piece(warn, "IOBUF_PARAMS: this option takes on or off and is ignored: ", option, ".");
                return;
            }
            rule.*flag.member = !is_off;
            return;
        }
    }
    warn_of_piece(warn, "IOBUF_PARAMS: there is no option \"", option,
                  "\"; known are size, count, prefetch, direct, verbose, alone, mpiio, stdio, "
                  "auto, only, not and off.");
}

void read_limit(TextRange name, TextRange value, TextRange option, Limits& limits, Warn warn) noexcept {
    std::uint64_t number = 0;
    const bool good = read_size(value.begin, value.length, number);
    if (good && name.is("maxmem")) {
        limits.memory = number;
    } else if (good && name.is("threads") && number <= 16) {
        limits.threads = static_cast<std::uint32_t>(number);
    } else if (good && name.is("age") && number >= 1 && number <= 3600) {
        limits.max_age_ms = static_cast<std::uint32_t>(number * 1000);
    } else {
        warn_of_piece(
            warn, "IOBUF_PARAMS: %process does not know \"", option,
            "\"; it takes maxmem=SIZE, threads=N (0 to 16), age=SECONDS (1 to 3600), only=PROGRAM and not=PROGRAM.");
    }
}

/// "count=2:size=32m:direct", as some sites print it: options without a pattern, for all files.
bool is_option(TextRange piece) noexcept {
    const char* equals = find_character(piece.begin, piece.begin + piece.length, '=');
    if (equals == piece.begin + piece.length) {
        return false;
    }
    const TextRange name = trim_blanks(piece.begin, equals);
    bool is_known =
        name.is("mpiio") || name.is("stdio") || name.is("only") || name.is("not") || is_option_without_effect(name);
    for (const Number& number : numbers) {
        is_known |= name.is(number.name);
    }
    return is_known;
}

/// Whether an entry begins with a word after "%" that has no meaning, as a misspelled one. Prints a warning then.
bool has_unknown_keyword(TextRange pattern, Warn warn) noexcept {
    if (*pattern.begin != '%') {
        return false;
    }
    for (const char* keyword : {"%process", "%locked", "%stdin", "%stdout", "%stderr"}) {
        if (pattern.is(keyword)) {
            return false;
        }
    }
    warn_of_piece(warn, "IOBUF_PARAMS: there is no \"", pattern,
                  "\"; known are %process, %locked, %stdin, %stdout and %stderr, and \\% begins a pattern of files.");
    return true;
}

/// Which programs an entry is for.
struct ProgramFilter {
    bool has_only = false, is_named = false, is_left_out = false;
    bool is_program_included() const noexcept { return !is_left_out && (is_named || !has_only); }

    /// False: another option.
    bool read(TextRange name, TextRange value, const char* program) noexcept {
        const bool only = name.is("only");
        if (!only && !name.is("not")) {
            return false;
        }
        char pattern[4096];
        const bool fits = value.length < sizeof(pattern);  // no path is longer
        const std::size_t length = fits ? value.length : 0;
        std::memcpy(pattern, value.begin, length);
        pattern[length] = 0;
        const bool matches = fits && program != nullptr && pattern_covers(pattern, program, program);
        has_only |= only;
        is_named |= only && matches;
        is_left_out |= !only && matches;
        return true;
    }
};

/// Reads the entry %locked of the site, whose options later entries cannot change.
void read_lock(TextRange name, TextRange value, TextRange option, Settings& into, Warn warn) noexcept {
    if (name.is("maxmem") || name.is("threads") || name.is("age")) {
        read_limit(name, value, option, into.limits, warn);
    } else {
        read_option(name, value, option, into.locked_options, warn);
    }
    const std::size_t length = std::strlen(into.locked);
    if (length + name.length + 2 > sizeof(into.locked)) {
        warn_of_piece(warn, "IOBUF_PARAMS: %locked has too many options; not locked: ", option, ".");
        return;
    }
    std::memcpy(into.locked + length, name.begin, name.length);
    into.locked[length + name.length] = ':';
}

/// Calls `use(name, value, option)` for each option of an entry.
template <class Use>
void for_each_option(const char* colon, const char* end, const Use& use) noexcept {
    for (const char* from = colon; from < end;) {
        const char* to = find_character(from + 1, end, ':');
        const TextRange option = trim_blanks(from + 1, to);
        const char* option_end = option.begin + option.length;
        const char* equals = find_character(option.begin, option_end, '=');
        use(trim_blanks(option.begin, equals),
            equals < option_end ? trim_blanks(equals + 1, option_end) : TextRange{option_end, 0}, option);
        from = to;
    }
}

/// Reads the options of an entry. Returns false if it covers no file: it is for another program, or locks options.
bool read_options(const char* colon, const char* end, TextRange pattern, Rule& rule, Settings& into,
                  Warn warn) noexcept {
    const bool process = pattern.is("%process");
    const bool locks = pattern.is("%locked");
    ProgramFilter program_filter;
    for_each_option(colon, end, [&](TextRange name, TextRange value, TextRange option) {
        if (program_filter.read(name, value, into.program) && value.length == 0) {
            warn_of_piece(warn, "IOBUF_PARAMS: this option needs the name of a program: ", option, ".");
        }
    });
    if (!program_filter.is_program_included()) {
        into.is_excluded |= process;
        return false;
    }
    for_each_option(colon, end, [&](TextRange name, TextRange value, TextRange option) {
        if (ProgramFilter{}.read(name, value, nullptr) || is_option_locked_by_site(name, option, into, warn)) {
            return;
        }
        if (locks) {
            read_lock(name, value, option, into, warn);
        } else if (process) {
            read_limit(name, value, option, into.limits, warn);
        } else {
            read_option(name, value, option, rule, warn);
        }
    });
    return !locks;
}

/// One entry between commas.
void read_entry(const char* begin, const char* end, Settings& into, Warn warn) noexcept {
    const char* colon = find_character(begin, end, ':');
    const bool for_all = is_option(trim_blanks(begin, colon));
    const TextRange pattern = for_all ? TextRange{"*", 1} : trim_blanks(begin, colon);
    colon = for_all ? begin - 1 : colon;
    if (pattern.length == 0) {
        if (trim_blanks(begin, end).length > 0) {
            warn_of_piece(warn, "IOBUF_PARAMS: an entry has no pattern and is left out: \"", trim_blanks(begin, end),
                          "\".");
        }
        return;
    }
    if (has_unknown_keyword(pattern, warn)) {
        return;
    }
    std::uint64_t bytes = 0;
    const bool process = pattern.is("%process");
    if (!process && read_size(pattern.begin, pattern.length, bytes)) {
        warn_of_piece(
            warn, "IOBUF_PARAMS: the pattern \"", pattern,
            "\" looks like a size; it matches only files of that name. Write *:size=... to set the size for all "
            "files.");
    }
    Rule rule = into.locked_options;
    const bool fits = pattern.length < sizeof(rule.pattern);
    if (!read_options(colon, end, pattern, rule, into, warn)) {
        return;
    }
    if (process || pattern.is("%stdin") || pattern.is("%stderr")) {
        return;  // these two are the business of the C library, which has no reason to read ahead or to delay errors
    }
    if (pattern.is("%stdout")) {
        into.standard_output_bytes = rule.buffer_bytes;
        return;
    }
    if (!fits || into.rule_count == Settings::max_rules) {
        warn_of_piece(warn, "IOBUF_PARAMS: too long or too many entries; left out: \"", pattern, "\".");
        return;
    }
    rule.may_suspend = rule.automatic;
    std::memcpy(rule.pattern, pattern.begin, pattern.length);
    rule.pattern[pattern.length] = 0;
    into.rules[into.rule_count++] = rule;
}

}  // namespace

bool read_size(const char* text, std::size_t length, std::uint64_t& bytes) noexcept {
    std::size_t digits = 0;
    std::uint64_t value = 0;
    for (; digits < length && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
        if (value > (1ULL << 58U)) {
            return false;
        }
        value = value * 10 + static_cast<std::uint64_t>(text[digits] - '0');
    }
    if (digits == 0) {
        return false;
    }
    unsigned shift = 0;
    if (digits < length) {
        const char unit = static_cast<char>(text[digits] | 0x20);
        shift = unit == 'k' ? 10 : unit == 'm' ? 20 : unit == 'g' ? 30 : unit == 't' ? 40 : 0;
        ++digits;
        if (shift == 0) {
            return false;
        }
    }
    bytes = value << shift;
    return digits == length && (bytes >> shift) == value;
}

void read_params(const char* text, Settings& into, Warn warn) noexcept {
    const char* begin = text;
    while (*begin != 0) {
        while (is_blank(*begin)) {
            ++begin;
        }
        const bool comment = *begin == '#';  // only where an entry starts: names may hold this sign
        const char* end = begin;
        while (*end != 0 && *end != '\n' && (comment || *end != ',')) {
            ++end;
        }
        if (!comment) {
            read_entry(begin, end, into, warn);
        }
        begin = *end == 0 ? end : end + 1;
    }
}

Rule* find_rule_by_name(Settings& settings, const char* name, const char* absolute) noexcept {
    const bool system = absolute != nullptr && is_system_path(absolute);
    for (std::size_t i = 0; i < settings.rule_count; ++i) {
        Rule& rule = settings.rules[i];
        if ((!system || rule.pattern[0] == '/') && pattern_covers(rule.pattern, name, absolute)) {
            __atomic_fetch_add(&rule.match_count, 1, __ATOMIC_RELAXED);
            return rule.is_disabled ? nullptr : &rule;
        }
    }
    return nullptr;
}

int find_rule_index(const Settings& settings, const char* name) noexcept {
    for (std::size_t i = 0; i < settings.rule_count; ++i) {
        const Rule& rule = settings.rules[i];
        if (pattern_covers(rule.pattern, name, nullptr)) {
            return rule.is_disabled ? no_rule : static_cast<int>(i);
        }
        const char first = rule.pattern[0];
        if (first == '/' || first == '*' || first == '?' || first == '[' || first == '\\') {
            return rule_by_absolute_path;  // a link, or a relative name, may still lead to a file that it covers
        }
    }
    return no_rule;
}

}  // namespace sonde::settings
