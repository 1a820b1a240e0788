// SPDX-License-Identifier: Apache-2.0
// Parses IOBUF_PARAMS: pattern[:option[=value]]...[,pattern...].
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::settings {

/// One entry: files whose name matches `pattern` get `buffer_count` buffers of `buffer_bytes` bytes. The defaults are
/// those that job scripts spell out for Cray's library: *:size=1M:count=4:prefetch=1.
struct Rule {
    char pattern[256] = {};
    std::uint32_t buffer_bytes = 1U << 20U;
    std::uint32_t buffer_count = 4;
    std::uint32_t prefetch = 1;  ///< buffers read ahead; 0 = never
    bool direct = false;
    bool verbose = false;
    bool is_brief = false;      ///< verbose for all files (IOBUF_VERBOSE): files with few calls share one line
    bool mpi_disjoint = false;  ///< the user says that ranks neither write nor read what others write before a sync
    bool only_stdio_access = false;  ///< the user states that only C streams access the file: larger buffers
    bool is_only_user = false;  ///< the user says that no other process uses the file: a refused lease does not count
    bool is_disabled = false;   ///< files that match are not buffered
    bool automatic = false;     ///< buffered only under a lease; size, count and prefetch follow from the first calls
    bool may_suspend = false;   ///< as `automatic`; calls and files without benefit bypass the buffer
    std::uint32_t match_count = 0;
};

/// Settings of the process: the entry %process:maxmem=..:threads=..:age=..
struct Limits {
    std::uint64_t memory = 256ULL << 20U;  ///< bytes of buffers of this process
    std::uint32_t threads = 2;             ///< that read ahead and write behind; 0: the program's own calls do it
    bool uses_leases = true;         ///< the kernel's leases are used where there are any; false only in unit tests
    std::uint32_t max_age_ms = 200;  ///< no data waits longer than about this before it is handed to the kernel
};

/// Mode of the library for the files that match the entries (SONDE_IOBUF).
enum class Stage : std::uint8_t {
    Buffer,
    Count,   ///< nothing is buffered; files are watched as with option auto, and counted
    Verify,  ///< buffered, and everything is read again from storage and compared
};

struct Settings {
    static constexpr std::size_t max_rules = 64;
    Rule rules[max_rules];
    std::size_t rule_count = 0;
    std::uint32_t standard_output_bytes = 0;  ///< %stdout was named: size of its buffer
    Limits limits;
    Stage stage = Stage::Buffer;
    const char* program = nullptr;  ///< absolute path of the executable, for only= and not=
    const char* job = nullptr;      ///< of the batch system, for the summary
    const char* summary = nullptr;  ///< path of a file, or "syslog"
    bool is_first_rank = true;      ///< of an MPI program, or no such program
    bool is_excluded = false;       ///< an entry %process:only= or not= excludes this program
    Rule locked_options;            ///< what %locked sets for all entries that follow
    char locked[256] = {};          ///< names of its options, each followed by ":"
};

/// Function that is called with one sentence for each invalid option.
using Warn = void (*)(const char* sentence);

/// Adds the entries of `text` (separated by "," or line ends; "#" starts a comment up to the end of the line). An entry
/// that makes no sense is left out, an option that makes no sense is ignored: the program must run in any case.
void read_params(const char* text, Settings& into, Warn warn) noexcept;

/// "1M", "20K", "1g", "512": bytes. False when it is no size.
bool read_size(const char* text, std::size_t length, std::uint64_t& bytes) noexcept;

/// Returns the first rule that covers the name, or nullptr. Only patterns that start with "/" cover system paths.
Rule* find_rule_by_name(Settings& settings, const char* name, const char* absolute) noexcept;

/// The number of the rule that covers a file opened as `name`, as far as this name tells: `no_rule` when none can,
/// `rule_by_absolute_path` when only the absolute path decides.
inline constexpr int no_rule = -1;
inline constexpr int rule_by_absolute_path = -2;
int find_rule_index(const Settings& settings, const char* name) noexcept;

}  // namespace sonde::settings
