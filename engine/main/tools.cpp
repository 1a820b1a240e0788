// SPDX-License-Identifier: Apache-2.0
// The small commands: what can run here, what is this machine.
#include "backends/backend.hpp"
#include "main/commands.hpp"
#include "meters/clock.hpp"
#include "phases/outcome.hpp"
#include "plan/json_io.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"
#include "runs/device_target.hpp"

#include <cstdio>
#include <filesystem>
#include <iostream>

namespace sonde {

using nlohmann::ordered_json;

int command_backends(bool json, const std::string& directory) {
    ordered_json rows = ordered_json::array();
    for (const backends::Backend* backend : backends::list_backends()) {
        const backends::Availability answer = backend->check_availability(directory);
        ordered_json row{{"name", backend->name}, {"summary", backend->summary}, {"usable", answer.is_available}};
        if (!answer.is_available) {
            row["why"] = answer.reason;
        }
        row["queue"] = backend->traits.supports_queue;
        row["direct"] = backend->traits.supports_direct;
        row["collective"] = backend->traits.supports_collective;
        rows.push_back(row);
        if (!json) {
            std::printf("%-9s %-4s %s\n", std::string(backend->name).c_str(), answer.is_available ? "yes" : "no",
                        answer.is_available ? std::string(backend->summary).c_str() : answer.reason.c_str());
        }
    }
    if (json) {
        std::cout << plan::serialize_json(rows, plan::JsonEncoding::strict_utf8, 2) << "\n";
    }
    return phases::exit_done;
}

int command_probe(const std::string& directory) {
    std::error_code failure;
    const bool is_device = std::filesystem::is_block_file(directory, failure);
    if (!is_device && !std::filesystem::is_directory(directory, failure)) {
        records::print_error(directory + " is not a directory: name one on the file system to describe");
        return phases::exit_plan;
    }
    ordered_json out(records::describe_node(is_device ? "/" : directory));
    if (is_device) {
        out["file_system"] = runs::describe_device_target(directory);
    }
    out["clock"] = meters::Clock::calibrate().source();
    out["engine"] = records::engine_version();
    std::cout << plan::serialize_json(out, plan::JsonEncoding::utf8, 2) << "\n";
    return phases::exit_done;
}

}  // namespace sonde
