// SPDX-License-Identifier: Apache-2.0
// The small commands: what can run here, what is this machine, what did a killed run leave.
#include "backends/backend.hpp"
#include "files/manifest.hpp"
#include "files/removal.hpp"
#include "files/tree_removal.hpp"
#include "main/commands.hpp"
#include "phases/outcome.hpp"
#include "plan/units.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>

namespace sonde {

using nlohmann::ordered_json;

int command_backends(bool json, const std::string& directory) {
    ordered_json all = ordered_json::array();
    for (const backends::Backend* backend : backends::list()) {
        const backends::Answer answer = backend->usable(directory);
        ordered_json one{{"name", backend->name}, {"summary", backend->summary}, {"usable", answer.yes}};
        if (!answer.yes) {
            one["why"] = answer.why;
        }
        one["queue"] = backend->traits.queue;
        one["direct"] = backend->traits.direct;
        one["collective"] = backend->traits.collective;
        all.push_back(one);
        if (!json) {
            std::printf("%-9s %-4s %s\n", std::string(backend->name).c_str(), answer.yes ? "yes" : "no",
                        answer.yes ? std::string(backend->summary).c_str() : answer.why.c_str());
        }
    }
    if (json) {
        std::cout << all.dump(2) << "\n";
    }
    return phases::exit_done;
}

int command_probe(const std::string& directory) {
    std::error_code failure;
    if (!std::filesystem::is_directory(directory, failure)) {
        records::complain(directory + " is not a directory: name one on the file system to describe");
        return phases::exit_plan;
    }
    ordered_json out(records::describe_node(directory));
    out["clock"] = meters::Clock::calibrate().source();
    out["engine"] = records::engine_version();
    std::cout << out.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
    return phases::exit_done;
}

namespace {

using nlohmann::ordered_json;

/// The run made trees of its own in a directory that was there before.
bool makes_trees(const files::Manifest& manifest) {
    return std::any_of(manifest.trees.rules.begin(), manifest.trees.rules.end(),
                       [](const files::TreeRule& rule) { return rule.made; });
}

/// Removes what a run left; in a directory that it found, only its trees.
files::Removal remove_what_is_left(const std::string& directory, const files::Manifest& manifest, bool dry) {
    if (!manifest.found) {
        return files::remove_run(directory, manifest, dry);
    }
    files::Removal removal = files::remove_trees(directory, manifest, dry);
    if (!dry && removal.left.empty()) {
        files::Manifest::remove(directory);
    }
    return removal;
}

/// "sonde-20261123T031203Z-name-68133f98", as runs call the directories that they make.
bool called_like_a_run(const std::string& directory) {
    const std::string name = std::filesystem::path(directory).filename();
    constexpr std::string_view shape = "sonde-00000000T000000Z-";  // 0: any digit
    return name.size() > shape.size() && std::equal(shape.begin(), shape.end(), name.begin(), [](char want, char is) {
               return want == '0' ? is >= '0' && is <= '9' : want == is;
           });
}

/// Why a run directory must stay; empty when its run has ended and the directory is its own.
std::string reason_to_keep(const files::Manifest& manifest, bool elsewhere) {
    const std::string who = "its run " + records::json_text(manifest.run);
    const files::Life life = manifest.life();
    if (life == files::Life::alive) {
        return who + " is still going on (process " + std::to_string(manifest.pid) + ")";
    }
    if (life == files::Life::elsewhere && !elsewhere) {
        return who + " was started on " + records::json_text(manifest.host) + " as process " +
               std::to_string(manifest.pid) +
               ", which cannot be asked from here: clean there, or add --elsewhere once you know that it has ended";
    }
    if (manifest.found && !makes_trees(manifest)) {
        return who +
               " was told to use a directory that was already there (target.use_existing), so nothing in it is "
               "known to be its own";
    }
    return {};
}

ordered_json clean_one(const std::string& directory, const CleanArguments& arguments, int& code) {
    ordered_json one{{"directory", records::json_text(directory)}};
    try {
        const std::optional<files::Manifest> manifest = files::Manifest::load(directory);
        if (!manifest) {
            if (!called_like_a_run(directory)) {
                return {};
            }
            one["kept"] =
                "it is called like the directory of a run, but holds no list of what the run made: if a server of the "
                "file system is away, clean again when it is back, else look inside and remove it by hand";
            return one;
        }
        one["run"] = records::json_text(manifest->run);
        const std::string keep = reason_to_keep(*manifest, arguments.elsewhere);
        if (!keep.empty()) {
            one["kept"] = keep;
            return one;
        }
        const files::Removal removal = remove_what_is_left(directory, *manifest, arguments.dry_run);
        one["files"] = removal.files;
        one["bytes"] = removal.bytes;
        one["left"] = ordered_json::array();
        for (const std::string& left : removal.left) {
            one["left"].push_back(records::json_text(left));
        }
        code = removal.left.empty() ? code : static_cast<int>(phases::exit_failed);
    } catch (const std::exception& error) {
        one["kept"] = records::json_text(error.what());
        code = phases::exit_failed;
    }
    return one;
}

void print_clean(const ordered_json& report, const CleanArguments& arguments) {
    for (const ordered_json& one : report) {
        const std::string where = one.at("directory");
        if (one.contains("kept")) {
            std::printf("%s: kept: %s\n", where.c_str(), one.at("kept").get<std::string>().c_str());
            continue;
        }
        std::printf("%s: %s %lu files, %s\n", where.c_str(), arguments.dry_run ? "would remove" : "removed",
                    one.at("files").get<unsigned long>(), plan::format_bytes(one.at("bytes")).c_str());
        for (const auto& left : one.at("left")) {
            std::printf("  %s\n", left.get<std::string>().c_str());
        }
    }
    if (report.empty()) {
        std::printf("nothing to remove below %s\n", records::json_text(arguments.directory).c_str());
    }
}

}  // namespace

int command_clean(const CleanArguments& arguments) {
    namespace fs = std::filesystem;
    std::error_code failure;
    if (!fs::is_directory(arguments.directory, failure)) {
        records::complain(arguments.directory + " is not a directory: name the target of the runs");
        return phases::exit_plan;
    }
    std::vector<std::string> candidates{arguments.directory};
    fs::directory_iterator entry(arguments.directory, failure);
    for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
        std::error_code unknown;
        if (entry->is_directory(unknown) && !entry->is_symlink(unknown)) {
            candidates.push_back(entry->path());
        }
    }
    if (failure) {
        records::complain(arguments.directory + " cannot be listed: " + failure.message());
        return phases::exit_environment;
    }
    std::sort(candidates.begin() + 1, candidates.end());
    ordered_json report = ordered_json::array();
    int code = phases::exit_done;
    for (const std::string& candidate : candidates) {
        ordered_json one = clean_one(candidate, arguments, code);
        if (!one.is_null()) {
            report.push_back(std::move(one));
        }
    }
    if (arguments.json) {
        std::cout << report.dump(2) << "\n";
    } else {
        print_clean(report, arguments);
    }
    return code;
}

}  // namespace sonde
