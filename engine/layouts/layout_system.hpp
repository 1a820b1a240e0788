// SPDX-License-Identifier: Apache-2.0
// The interface of a kind of file system whose files have stripe layouts: one file each, one list (list.cpp).
#pragma once

#include "files/confined_directory.hpp"
#include "layouts/ceph_placement.hpp"
#include "layouts/stripe_layout.hpp"
#include "plan/plan.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::layouts {

/// Why a file that holds bytes has no readable layout.
struct MissingLayout {
    std::string reason;  ///< empty: no layout is expected there
    std::string advice;  ///< what to do about it; may be empty
};

/// Functions by which a file system sets requested striping.
struct StripingSetter {
    /// Throws std::invalid_argument with one sentence when the file system cannot grant the request. `own_directory`:
    /// the run makes a directory with these stripes, which its files inherit; else each file is striped.
    void (*check_plan)(const plan::Striping& requested, bool own_directory);
    /// Stripes the files that are made in the directory from now on. Returns 0 or an errno; throws
    /// std::invalid_argument when a program refuses.
    int (*stripe_directory)(const plan::Striping& requested, const files::ConfinedDirectory& directory);
    /// Makes an empty file, which must not exist, with these stripes. Returns 0 or an errno.
    int (*make_file)(const plan::Striping& requested, const files::ConfinedDirectory& parent, const std::string& name);
};

/// Reads the layout of one file; absent when it has none.
using LayoutReader = std::function<std::optional<StripeLayout>(const std::string& path)>;

/// One kind of file system. A function that is nullptr does not apply to it.
struct LayoutSystem {
    std::array<std::string_view, 4> types;  ///< as /proc/mounts writes them; unused entries are empty
    std::uint64_t max_queries;              ///< files of a phase whose layouts are read after it
    /// Reads an extended attribute of the file: cheap and harmless while operations are timed. Absent when the file has
    /// no such attribute. Throws std::invalid_argument with one sentence when its value is not a layout.
    std::optional<StripeLayout> (*read_attribute)(const std::string& path, const CephPlacement* placement);
    /// Reads the layout in a slower way, such as a program. `type_number` is `f_type` of statfs(2): absent when the
    /// file is on another kind of file system. Throws also std::runtime_error when the program does not answer.
    std::optional<StripeLayout> (*query)(const std::string& path, std::uint32_t type_number);
    /// Explains why neither of both gave a layout.
    MissingLayout (*explain_missing)(const std::string& path);
    const StripingSetter* striping;  ///< nullptr: striping cannot be requested
    bool readable_while_timed;       ///< false: layouts come from a program, which must not start meanwhile
    /// Makes a reader for files below `directory` while operations are timed, or an empty one where targets cannot be
    /// distinguished; nullptr: attributes are read.
    LayoutReader (*make_timed_reader)(const std::string& directory) = nullptr;
    bool needs_placement = false;         ///< objects are placed by CephPlacement
    bool is_any_other_fuse_type = false;  ///< also serves types that begin with "fuse" and are in no list
};

/// The value of an extended attribute; absent when the file has none of this name.
std::optional<std::string> read_extended_attribute(const std::string& path, const char* name);
/// Explains why the attribute cannot be read; empty when it can.
MissingLayout explain_missing_attribute(const std::string& path, const char* name);
/// Output of a program; empty when it fails. Throws std::runtime_error when it does not answer in time.
std::string run_layout_program(const std::vector<std::string>& command);
/// Explains why the program fails; empty when it does not.
MissingLayout explain_program_failure(const std::vector<std::string>& command);

/// "count 4, size 1 MiB".
std::string describe_striping(const plan::Striping& requested);
/// Throws std::invalid_argument with this sentence.
[[noreturn]] void throw_invalid_striping(const std::string& sentence);
/// Makes a file with open flags and stripes it by its descriptor; removes it when that fails. `set_striping` returns 0
/// or an errno, as this function does.
int make_file_and_stripe(const files::ConfinedDirectory& parent, const std::string& name, int flags,
                         const std::function<int(int descriptor)>& set_striping);

}  // namespace sonde::layouts
