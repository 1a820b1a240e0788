// SPDX-License-Identifier: Apache-2.0
// `clean`: removes what killed runs left. Other users may write in the directory that is cleaned, so a manifest counts
// only when nobody else can have written it, and every directory is held open from its manifest to its removal.
#include "files/manifest.hpp"
#include "files/removal.hpp"
#include "files/tree_removal.hpp"
#include "main/clean_bucket.hpp"
#include "main/commands.hpp"
#include "objects/store_settings.hpp"
#include "phases/outcome.hpp"
#include "plan/json_io.hpp"
#include "plan/units.hpp"
#include "records/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <utility>

namespace sonde {
namespace {

using nlohmann::ordered_json;

/// Whether the run created trees in a directory that existed before.
bool has_trees(const files::Manifest& manifest) {
    return std::any_of(manifest.trees.rules.begin(), manifest.trees.rules.end(),
                       [](const files::TreeRule& rule) { return rule.created_by_run; });
}

/// Removes the files of a run; in a directory that existed before, only its trees.
files::Removal remove_remaining_files(const files::RunDirectories& directories, const files::Manifest& manifest,
                                      bool dry) {
    if (!manifest.directory_existed_before) {
        return files::remove_run(directories, manifest, dry);
    }
    files::Removal removal = files::remove_trees(directories.root, manifest, dry);
    if (!dry && removal.remaining.empty()) {
        files::Manifest::remove(directories.root);
    }
    return removal;
}

/// "sonde-20261123T031203Z-name-68133f98", the default name of a run directory.
bool is_run_directory_name(const std::string& name) {
    constexpr std::string_view shape = "sonde-00000000T000000Z-";  // 0: any digit
    return name.size() > shape.size() && std::equal(shape.begin(), shape.end(), name.begin(), [](char want, char is) {
               return want == '0' ? is >= '0' && is <= '9' : want == is;
           });
}

}  // namespace

std::string explain_active_run(const files::Manifest& manifest, bool elsewhere) {
    const std::string who = "its run " + records::to_json_text(manifest.run_id);
    const files::WriterState writer_state = manifest.check_writer_liveness();
    if (writer_state == files::WriterState::alive) {
        return who + " is still going on (process " + std::to_string(manifest.pid) + ")";
    }
    if (writer_state == files::WriterState::elsewhere && !elsewhere) {
        return who + " was started on " + records::to_json_text(manifest.host) + " as process " +
               std::to_string(manifest.pid) +
               ", which cannot be asked from here: clean there, or add --elsewhere once you know that it has ended";
    }
    return {};
}

namespace {

/// Why a run directory must not be removed; empty when its run has ended and created the directory.
std::string explain_refusal(const files::Manifest& manifest, bool elsewhere) {
    if (std::string reason = explain_active_run(manifest, elsewhere); !reason.empty()) {
        return reason;
    }
    if (manifest.directory_existed_before && !has_trees(manifest)) {
        return "its run " + records::to_json_text(manifest.run_id) +
               " was told to use a directory that was already there (target.use_existing), so nothing in it is "
               "known to be its own";
    }
    return {};
}

class CleanRun {
 public:
    explicit CleanRun(const CleanArguments& arguments)
        : arguments_(arguments),
          target_(files::ConfinedDirectory::open(arguments.directory)),
          target_path_(target_.current_path()) {}

    /// Cleans the directory itself and those in it. The exit code.
    int run() {
        if (!target_) {
            const int error = target_.error();
            const bool no_directory = error == ENOENT || error == ENOTDIR;
            records::print_error(arguments_.directory +
                                 (no_directory ? " is not a directory: name the target of the runs"
                                               : std::string(" cannot be opened: ") + std::strerror(error)));
            return no_directory ? phases::exit_plan : phases::exit_environment;
        }
        std::vector<std::string> names;
        files::Listing entries = target_.list();
        if (entries.error() != 0) {
            records::print_error(arguments_.directory + " cannot be listed: " + std::strerror(entries.error()));
            return phases::exit_environment;
        }
        while (const char* name = entries.next()) {
            if (entries.may_be_directory()) {
                names.emplace_back(name);
            }
        }
        std::sort(names.begin(), names.end());
        add_report_entry(clean_candidate(target_.duplicate()));
        for (const std::string& name : names) {
            add_report_entry(clean_candidate(target_.open_subdirectory(name)));
        }
        return refused_ ? static_cast<int>(phases::exit_plan) : code_;
    }

    const ordered_json& report() const { return report_; }

 private:
    void add_report_entry(ordered_json entry) {
        if (!entry.is_null()) {
            report_.push_back(std::move(entry));
        }
    }

    /// The report on one directory; null when it has no files of a run.
    ordered_json clean_candidate(files::ConfinedDirectory directory) {
        ordered_json entry{{"directory", records::to_json_text(directory.path())}};
        const bool named_as_run = is_run_directory_name(directory.name());
        if (!directory) {
            return report_unopened(directory, named_as_run, std::move(entry));
        }
        try {
            const std::optional<files::Manifest> manifest = files::Manifest::load(directory, files::Trust::removal);
            if (manifest) {
                clean_run(std::move(directory), *manifest, entry);
                return entry;
            }
            if (!named_as_run) {
                return {};
            }
            entry["not_removed"] =
                "it is called like the directory of a run, but holds no list of what the run made: if a server of the "
                "file system is away, clean again when it is back, else look inside and remove it by hand";
        } catch (const files::UntrustedManifestError& ignored) {
            entry["not_removed"] = records::to_json_text(ignored.what());
        } catch (const std::exception& error) {
            entry["not_removed"] = records::to_json_text(error.what());
            code_ = phases::exit_failed;
        }
        return entry;
    }

    ordered_json report_unopened(const files::ConfinedDirectory& directory, bool named_as_run, ordered_json entry) {
        const int error = directory.error();
        if (error == EXDEV && named_as_run) {
            entry["not_removed"] = "another file system is mounted on it: name that directory to clean it";
            return entry;
        }
        // Gone or replaced since it was listed, or not of a run.
        if (error == EXDEV || error == ENOENT || error == ENOTDIR || error == ELOOP) {
            return {};
        }
        entry["not_removed"] = std::string("it cannot be opened: ") + std::strerror(error);
        code_ = phases::exit_failed;
        return entry;
    }

    void clean_run(files::ConfinedDirectory directory, const files::Manifest& manifest, ordered_json& entry) {
        entry["run"] = records::to_json_text(manifest.run_id);
        const std::string keep = explain_refusal(manifest, arguments_.elsewhere);
        if (!keep.empty()) {
            entry["not_removed"] = keep;
            return;
        }
        plan::Files files = manifest.files;
        if (manifest.directory_existed_before) {
            files.across.clear();  // only trees in the directory itself are removed
        }
        const files::RunDirectories directories = files::open_run_directories(std::move(directory), files);
        const std::string refusal = list_directories(directories, entry);
        if (!refusal.empty()) {
            refused_ = true;
            entry["not_removed"] = records::to_json_text(refusal);
            records::print_error(directories.root.path() + " is not removed: " + refusal);
            return;
        }
        const files::Removal removal = remove_remaining_files(directories, manifest, arguments_.dry_run);
        code_ = report_removal(removal, entry) ? code_ : static_cast<int>(phases::exit_failed);
    }

    /// Lists in `entry` every directory in which files would be removed, and those of them outside the target. Returns
    /// why nothing may be removed, empty when all may.
    std::string list_directories(const files::RunDirectories& directories, ordered_json& entry) const {
        std::string outside;
        std::string of_others;
        entry["directories"] = {records::to_json_text(directories.root.path())};
        entry["outside"] = ordered_json::array();
        for (const files::ConfinedDirectory& other : directories.other_targets) {
            if (other.error() == ENOENT) {
                continue;
            }
            entry["directories"].push_back(records::to_json_text(other.path()));
            if (other && !other.is_owned_by_caller()) {
                of_others += (of_others.empty() ? "" : ", ") + other.path();
            }
            if (!is_below_target(other)) {
                entry["outside"].push_back(records::to_json_text(other.path()));
                outside += (outside.empty() ? "" : ", ") + other.path();
            }
        }
        if (!of_others.empty()) {
            return "its list names directories that are not yours, in which nothing is removed: " + of_others +
                   "; let their owner clean, or remove them by hand";
        }
        if (!outside.empty() && !arguments_.outside && !arguments_.dry_run) {
            return "its run has files outside " + arguments_.directory + ", in " + outside +
                   ": add --yes to remove them there too";
        }
        return {};
    }

    bool is_below_target(const files::ConfinedDirectory& directory) const {
        const std::string path = directory.current_path();
        const std::string above = target_path_ + (target_path_.ends_with('/') ? "" : "/");
        return !target_path_.empty() && path.starts_with(above);
    }

    const CleanArguments& arguments_;
    files::ConfinedDirectory target_;
    std::string target_path_;
    ordered_json report_ = ordered_json::array();
    int code_ = phases::exit_done;
    bool refused_ = false;
};

void print_clean(const ordered_json& report, const CleanArguments& arguments) {
    for (const ordered_json& entry : report) {
        const std::string directory = entry.at("directory");
        if (entry.contains("not_removed")) {
            std::printf("%s: not removed: %s\n", directory.c_str(), entry.at("not_removed").get<std::string>().c_str());
            continue;
        }
        std::printf("%s: %s %lu files, %s\n", directory.c_str(), arguments.dry_run ? "would remove" : "removed",
                    entry.at("files").get<unsigned long>(), plan::format_bytes(entry.at("bytes")).c_str());
        for (std::size_t i = 1; i < entry.at("directories").size(); ++i) {
            std::printf("  also in %s\n", entry.at("directories").at(i).get<std::string>().c_str());
        }
        if (arguments.dry_run && !arguments.outside && !entry.at("outside").empty()) {
            std::printf("  needs --yes: files lie outside %s\n", records::to_json_text(arguments.directory).c_str());
        }
        for (const auto& remaining : entry.at("remaining")) {
            std::printf("  %s\n", remaining.get<std::string>().c_str());
        }
    }
    if (report.empty()) {
        std::printf("nothing to remove below %s\n", records::to_json_text(arguments.directory).c_str());
    }
}

}  // namespace

bool report_removal(const files::Removal& removal, ordered_json& entry) {
    entry["files"] = removal.files;
    entry["bytes"] = removal.bytes;
    entry["remaining"] = ordered_json::array();
    for (const std::string& remaining : removal.remaining) {
        entry["remaining"].push_back(records::to_json_text(remaining));
    }
    return removal.remaining.empty();
}

int command_clean(const CleanArguments& arguments) {
    ordered_json report = ordered_json::array();
    int code = phases::exit_done;
    if (objects::is_object_url(arguments.directory)) {
        code = clean_bucket(arguments, report);
    } else {
        CleanRun cleaning(arguments);
        code = cleaning.run();
        report = cleaning.report();
    }
    if (code == phases::exit_environment || (code == phases::exit_plan && report.empty())) {
        return code;
    }
    if (arguments.json) {
        std::cout << plan::serialize_json(report, plan::JsonEncoding::strict_utf8, 2) << "\n";
    } else {
        print_clean(report, arguments);
    }
    return code;
}

}  // namespace sonde
