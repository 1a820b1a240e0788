// SPDX-License-Identifier: Apache-2.0
// The command line of the simulator: the thinnest layer.
#include "phases/outcome.hpp"
#include "plan/parse.hpp"
#include "records/text.hpp"
#include "runs/capabilities.hpp"
#include "runs/execute.hpp"
#include "system/system_model_reader.hpp"
#include "virtual/simulated_venue.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

namespace {

using namespace sonde;

struct SimulatorArguments {
    std::string plan, system, mount;
    std::vector<std::string> faults;
    simulate::SimulationOptions options;
};

int run(SimulatorArguments& arguments) {
    for (const std::string& fault : arguments.faults) {
        arguments.options.faults.push_back(simulate::parse_fault(fault));
    }
    plan::Plan plan = plan::parse_plan(simulate::read_text_file(arguments.plan, "plan"), runs::list_capabilities());
    if (plan.target.device) {
        throw plan::PlanError("target.device: a simulated machine has file systems, no block devices: leave it out");
    }
    simulate::SystemModel site =
        simulate::read_system_model(simulate::read_text_file(arguments.system, "system"), arguments.mount);
    if (arguments.options.run_id.empty()) {
        arguments.options.run_id = "simulated-" + plan.id;
    }
    simulate::SimulatedVenue venue(std::move(plan), std::move(site), arguments.options);
    return runs::execute(venue);
}

int list_faults() {
    for (const simulate::FaultRule& rule : simulate::fault_rules) {
        std::string form = rule.name;
        form += *rule.part_kind == 0 ? "" : " <" + std::string(rule.part_kind) + ">";
        form += *rule.amount_meaning == 0 ? "" : " [" + std::string(rule.amount_meaning) + "]";
        std::printf("%-44s %s\n", form.c_str(), rule.meaning);
    }
    return 0;
}

int run_simulator(int argc, char** argv) {
    CLI::App app("Runs a plan on a described machine in virtual time.", "sonde-simulate");
    app.require_subcommand(1);
    SimulatorArguments arguments;
    for (int i = 0; i < argc; ++i) {
        arguments.options.command += (i > 0 ? " " : "") + std::string(argv[i]);
    }
    CLI::App* run_command = app.add_subcommand("run", "simulate a plan and write its record");
    run_command->add_option("plan", arguments.plan, "plan (JSON)")->required();
    run_command->add_option("--system", arguments.system, "resolved system (JSON)")->required();
    run_command->add_option("--mount", arguments.mount,
                            "mount or file system; default: the first that can be simulated");
    run_command->add_option("--record", arguments.options.record, "where the record goes; - is standard output");
    run_command->add_option("--run-id", arguments.options.run_id, "names the run");
    run_command->add_option("--started", arguments.options.started, "when it began, UTC, as 2014-08-23T12:00:00Z");
    run_command->add_option("--traces", arguments.options.traces, "folder for counters of servers and their messages");
    run_command->add_option("--processes", arguments.options.processes, "instead of the plan's")
        ->check(CLI::Range(1, 10000000));
    run_command->add_option("--nodes", arguments.options.nodes, "nodes to use")->check(CLI::Range(1, 10000000));
    run_command->add_option("--seed", arguments.options.seed, "of everything that is left to chance");
    run_command->add_option("--fault", arguments.faults, "what is wrong, as `slow-target 3 10x`; may be repeated")
        ->expected(1)
        ->take_all();
    CLI::App* faults_command = app.add_subcommand("faults", "list what may be wrong");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& error) {
        records::print_error(std::string(error.what()) + "; `sonde-simulate --help` explains");
        return phases::exit_plan;
    }
    if (faults_command->parsed()) {
        return list_faults();
    }
    try {
        return run(arguments);
    } catch (const plan::PlanError& error) {
        records::print_error(error.what());
        return phases::exit_plan;
    } catch (const simulate::SystemModelError& error) {
        records::print_error(error.what());
        return phases::exit_plan;
    } catch (const std::exception& error) {
        records::print_error(error.what());
        return phases::exit_environment;
    }
}

}  // namespace

int main(int argc, char** argv) {
    records::set_program_name("sonde-simulate");
    try {
        return run_simulator(argc, argv);
    } catch (...) {
        // No exception should reach this point; if one does, the program must not abort.
        static_cast<void>(std::fputs("sonde-simulate: an unknown failure\n", stderr));
    }
    return phases::exit_environment;
}
