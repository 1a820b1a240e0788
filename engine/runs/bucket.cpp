// SPDX-License-Identifier: Apache-2.0
#include "runs/bucket.hpp"

#include "files/object_run.hpp"
#include "objects/client.hpp"
#include "plan/plan_error.hpp"
#include "records/text.hpp"
#include "runs/manifest_state.hpp"
#include "runs/target_checks.hpp"

#include <cerrno>
#include <stdexcept>

namespace sonde::runs {
namespace {

using nlohmann::ordered_json;

plan::ObjectStore make_object_store(const plan::TargetSettings& target) {
    return target.s3.value_or(plan::ObjectStore{});
}

/// One request that needs the address, the certificate, the key, the clock and the bucket.
void check_bucket(const plan::TargetSettings& target) {
    const objects::StoreSettings settings = objects::read_store_settings(target.path, make_object_store(target));
    for (std::size_t endpoint = 0; endpoint < settings.endpoints.size(); ++endpoint) {
        objects::StoreClient client(settings, endpoint);
        const int failed = client.check_bucket();
        if (failed == 0) {
            continue;
        }
        const std::string sentence = "bucket " + settings.bucket + " at " + settings.endpoints[endpoint] +
                                     " cannot be used: " + client.failure();
        if (failed == -ENOENT) {
            throw plan::PlanError(sentence + "; name an existing bucket in target.path");
        }
        if (client.failure().find("RequestTimeTooSkewed") != std::string::npos) {
            throw EnvironmentError(sentence + "; set the clock of this node");
        }
        throw EnvironmentError(sentence + (failed == -EACCES ? "; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                                                               "and whether they may list and write this bucket"
                                                             : ""));
    }
}

}  // namespace

std::string open_bucket(phases::RunContext& context, int first_stage) {
    const plan::TargetSettings& target = context.plan.target;
    std::string directory = target.path;
    while (directory.ends_with('/')) {
        directory.pop_back();
    }
    directory += "/" + (target.directory.empty() ? "sonde-" + context.options.run_id : target.directory);
    try {
        check_bucket(target);
        files::ObjectRun run(target, directory);
        if (first_stage > 0) {
            const std::optional<files::Manifest> earlier = run.load();
            if (!earlier) {
                throw EnvironmentError("stage " + std::to_string(first_stage) +
                                       " continues an earlier stage, but there is no manifest below " + directory);
            }
            continue_manifest(context, *earlier);
        } else {
            context.manifest.trees.rules = files::list_tree_rules(context.plan);
        }
        fill_manifest(context);
        run.save(context.manifest, first_stage == 0);
    } catch (const plan::PlanError&) {
        throw;
    } catch (const EnvironmentError&) {
        throw;
    } catch (const std::runtime_error& error) {
        throw EnvironmentError(error.what());
    }
    return directory;
}

ordered_json describe_store(const plan::TargetSettings& target) {
    const objects::StoreSettings settings = objects::read_store_settings(target.path, make_object_store(target));
    objects::StoreClient client(settings, 0);
    static_cast<void>(client.check_bucket());
    ordered_json store{{"kind", "s3"},
                       {"bucket", records::to_json_text(settings.bucket)},
                       {"endpoints", ordered_json::array()},
                       {"client", "libcurl " + objects::load_curl().version}};
    for (const std::string& endpoint : settings.endpoints) {
        store["endpoints"].push_back(records::to_json_text(endpoint));
    }
    if (!client.exchange().server().empty()) {
        store["server"] = records::to_json_text(client.exchange().server());
    }
    return store;
}

ordered_json describe_bucket(const plan::TargetSettings& target) {
    const objects::StoreSettings settings = objects::read_store_settings(target.path, make_object_store(target));
    return {{"type", "s3"}, {"source", records::to_json_text(objects::bucket_url(settings, 0))}, {"network", true}};
}

}  // namespace sonde::runs
