// SPDX-License-Identifier: Apache-2.0
#include "runs/manifest_state.hpp"

#include "runs/target_checks.hpp"

#include <string>

namespace sonde::runs {

void continue_manifest(phases::RunContext& context, const files::Manifest& earlier) {
    if (earlier.tasks.threads_per_process != context.tasks.threads_per_process ||
        earlier.tasks.node_of_process.size() != context.tasks.node_of_process.size()) {
        throw EnvironmentError("stage " + std::to_string(context.options.stage) +
                               " must have as many tasks as the stage before (" +
                               std::to_string(earlier.tasks.tasks()) + ")");
    }
    context.manifest.data = earlier.data;
    context.manifest.trees = earlier.trees;
    context.manifest.directory_existed_before = earlier.directory_existed_before;
    context.manifest.last_write_rate = earlier.last_write_rate;
    context.manifest.last_read_rate = earlier.last_read_rate;
    files::Manifest own_manifest;
    own_manifest.stamp_this_process();
    if (own_manifest.host == earlier.host && own_manifest.boot_id == earlier.boot_id) {
        context.manifest.epoch_ns = earlier.epoch_ns;
    }
}

void fill_manifest(phases::RunContext& context) {
    files::Manifest& manifest = context.manifest;
    manifest.has_data = context.plan.has_data;
    manifest.run_id = context.options.run_id;
    manifest.files = context.plan.data.files;
    manifest.tasks = context.tasks;
    manifest.stamp_this_process();
}

}  // namespace sonde::runs
