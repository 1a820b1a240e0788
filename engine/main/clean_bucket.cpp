// SPDX-License-Identifier: Apache-2.0
#include "main/clean_bucket.hpp"

#include "files/object_run.hpp"
#include "phases/outcome.hpp"
#include "records/text.hpp"

#include <cerrno>
#include <stdexcept>
#include <string>
#include <vector>

namespace sonde {
namespace {

using nlohmann::ordered_json;

/// The report on one prefix; null when it has no manifest of a run.
ordered_json clean_prefix(const CleanArguments& arguments, const std::string& directory, int& code) {
    ordered_json entry{{"directory", records::to_json_text(directory)}};
    try {
        plan::TargetSettings target;
        target.path = directory;
        files::ObjectRun run(target, directory);
        const std::optional<files::Manifest> manifest = run.load();
        if (!manifest) {
            return {};
        }
        entry["run"] = records::to_json_text(manifest->run_id);
        if (const std::string reason = explain_active_run(*manifest, arguments.elsewhere); !reason.empty()) {
            entry["not_removed"] = reason;
            return entry;
        }
        const files::Removal removal = run.remove(*manifest, arguments.dry_run);
        entry["directories"] = {records::to_json_text(directory)};
        entry["outside"] = ordered_json::array();
        code = report_removal(removal, entry) ? code : static_cast<int>(phases::exit_failed);
    } catch (const std::runtime_error& error) {
        entry["not_removed"] = records::to_json_text(error.what());
        code = phases::exit_failed;
    }
    return entry;
}

}  // namespace

int clean_bucket(const CleanArguments& arguments, ordered_json& report) {
    int code = phases::exit_done;
    std::vector<std::string> directories;
    try {
        const objects::StoreSettings settings = objects::read_store_settings(arguments.directory, {});
        const std::string bucket = "s3://" + settings.bucket;
        const std::string prefix = settings.prefix.empty() ? std::string() : settings.prefix + "/";
        directories.push_back(bucket + (settings.prefix.empty() ? "" : "/" + settings.prefix));
        objects::StoreClient client(settings, 0);
        std::string token;
        do {
            std::vector<objects::ListedObject> page;
            if (const int failed = client.list(prefix, true, token, page); failed < 0) {
                records::print_error(arguments.directory + " cannot be listed: " + client.failure());
                return failed == -ENOENT ? phases::exit_plan : phases::exit_environment;
            }
            for (const objects::ListedObject& object : page) {
                if (object.is_prefix) {
                    directories.push_back(bucket + "/" + object.key.substr(0, object.key.size() - 1));
                }
            }
        } while (!token.empty());
    } catch (const std::runtime_error& error) {
        records::print_error(error.what());
        return phases::exit_environment;
    }
    for (const std::string& directory : directories) {
        if (ordered_json entry = clean_prefix(arguments, directory, code); !entry.is_null()) {
            report.push_back(std::move(entry));
        }
    }
    return code;
}

}  // namespace sonde
