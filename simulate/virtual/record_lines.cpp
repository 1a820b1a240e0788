// SPDX-License-Identifier: Apache-2.0
// The first and last lines of a simulated record, and the traces next to it.
#include "virtual/simulation.hpp"

#include "records/environment.hpp"
#include "records/text.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sonde::simulate {
namespace {

using nlohmann::ordered_json;

/// Seconds since 1970 of a time in ISO 8601; 0 for other text.
double parse_epoch(const std::string& started) {
    std::tm parts{};
    return strptime(started.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr ? 0 : static_cast<double>(timegm(&parts));
}

void write_file(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
}

}  // namespace

void Simulation::write_head() {
    if (options_.started.empty()) {
        options_.started = records::format_utc_now();
    }
    const SiteModel& site = machine_.site();
    ordered_json simulated{{"system", site.system}, {"mount", site.mount}, {"seed", options_.seed}};
    simulated["faults"] = ordered_json::array();
    for (const Fault& fault : options_.faults) {
        simulated["faults"].push_back(fault.text());
    }
    simulated["assumptions"] = site.assumptions;
    ordered_json line{{"schema", "sonde-record/2"},
                      {"id", options_.run_id},
                      {"engine", records::engine_version()},
                      {"started", options_.started},
                      {"command", records::json_text(options_.command)},
                      {"launch", "simulated"},
                      {"tasks", context_.tasks.tasks()},
                      {"processes", context_.tasks.node_of_process.size()},
                      {"threads", context_.tasks.threads},
                      {"nodes", context_.tasks.nodes()},
                      {"clock", "virtual"},
                      {"directory", records::json_text(context_.storage.directory)},
                      {"simulated", simulated}};
    line["plan"] = ordered_json::parse(plan_.canonical);
    writer_->line("run", line);
    for (int node = 0; node < context_.tasks.nodes(); ++node) {
        const ClientSite& client = site.clients[static_cast<std::size_t>(node)];
        context_.root_state.hosts.push_back(client.id);
        ordered_json facts{{"node", node}, {"host", client.id}, {"cpus", client.cores}, {"page_bytes", 4096}};
        if (client.memory > 0) {
            facts["memory_bytes"] = client.memory;
        }
        facts["file_system"] = {{"type", site.fs.kind},
                                {"mount_point", plan_.target.path},
                                {"source", site.system + ":" + site.fs.id},
                                {"network", !site.fs.local},
                                {"memory_backed", false}};
        facts["clock_offset_ns"] = 0;
        facts["clock_error_ns"] = 0;
        writer_->line("node", facts);
    }
    for (const std::string& assumption : site.assumptions) {
        writer_->line("finding", {{"id", "model_assumes"}, {"severity", "info"}, {"text", assumption}});
    }
}

void Simulation::write_end() {
    const phases::Outcome& outcome = context_.root_state.outcome;
    ordered_json end{
        {"status", outcome.status()}, {"exit_code", outcome.code}, {"seconds", to_seconds(machine_.now())}};
    if (!outcome.text.empty()) {
        end["text"] = outcome.text;
    }
    writer_->line("end", end);
    if (!outcome.text.empty()) {
        records::print_error(outcome.text);
    }
    if (!writer_->trouble().empty()) {
        records::print_error(writer_->trouble());
        context_.root_state.outcome.set(phases::exit_environment, writer_->trouble());
    }
}

/// Writes traces under the paths of real servers, so that programs that read those can read these.
void Simulation::write_traces() const {
    if (options_.traces.empty()) {
        return;
    }
    const std::filesystem::path directory = options_.traces;
    const Traces& traces = machine_.traces();
    const double epoch = parse_epoch(options_.started);
    const double now = epoch + to_seconds(machine_.now());
    for (const TraceFile& file : trace_files(traces, static_cast<std::size_t>(context_.tasks.nodes()))) {
        write_file(directory / file.path, file.text(traces, epoch, now));
    }
}

}  // namespace sonde::simulate
