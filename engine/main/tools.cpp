// SPDX-License-Identifier: Apache-2.0
// The small commands: what can run here, what is this machine, what did a killed run leave.
#include "backends/backend.hpp"
#include "main/commands.hpp"
#include "phases/manifest.hpp"
#include "phases/run.hpp"
#include "plan/units.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"

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
        std::fprintf(stderr, "sonde-engine: %s is not a directory\n", directory.c_str());
        return phases::exit_plan;
    }
    ordered_json out(records::describe_node(directory));
    out["clock"] = meters::Clock::calibrate().source();
    out["engine"] = records::engine_version();
    std::cout << out.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
    return phases::exit_done;
}

int command_clean(const std::string& directory, bool dry_run, bool json) {
    namespace fs = std::filesystem;
    std::error_code failure;
    if (!fs::is_directory(directory, failure)) {
        std::fprintf(stderr, "sonde-engine: %s is not a directory\n", directory.c_str());
        return phases::exit_plan;
    }
    std::vector<std::string> candidates{directory};
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, failure)) {
        if (entry.is_directory(failure) && !entry.is_symlink(failure)) {
            candidates.push_back(entry.path());
        }
    }
    ordered_json report = ordered_json::array();
    int code = phases::exit_done;
    for (const std::string& candidate : candidates) {
        ordered_json one{{"directory", records::json_text(candidate)}};
        try {
            const std::optional<phases::Manifest> manifest = phases::Manifest::load(candidate);
            if (!manifest) {
                continue;
            }
            if (manifest->alive()) {
                one["kept"] =
                    "its run " + manifest->run + " is still going on (process " + std::to_string(manifest->pid) + ")";
            } else {
                const phases::Removal removal = phases::remove_run(candidate, *manifest, dry_run);
                one["run"] = manifest->run;
                one["files"] = removal.files;
                one["bytes"] = removal.bytes;
                one["left"] = ordered_json::array();
                for (const std::string& left : removal.left) {
                    one["left"].push_back(records::json_text(left));
                }
                code = removal.left.empty() ? code : static_cast<int>(phases::exit_failed);
            }
        } catch (const std::exception& error) {
            one["kept"] = error.what();
            code = phases::exit_failed;
        }
        report.push_back(one);
    }
    if (json) {
        std::cout << report.dump(2) << "\n";
        return code;
    }
    for (const ordered_json& one : report) {
        const std::string where = one.at("directory");
        if (one.contains("kept")) {
            std::printf("%s: kept: %s\n", where.c_str(), one.at("kept").get<std::string>().c_str());
            continue;
        }
        std::printf("%s: %s %lu files, %s\n", where.c_str(), dry_run ? "would remove" : "removed",
                    one.at("files").get<unsigned long>(), plan::format_bytes(one.at("bytes")).c_str());
        for (const auto& left : one.at("left")) {
            std::printf("  %s\n", left.get<std::string>().c_str());
        }
    }
    if (report.empty()) {
        std::printf("nothing to remove below %s\n", directory.c_str());
    }
    return code;
}

}  // namespace sonde
