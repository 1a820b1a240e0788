// SPDX-License-Identifier: Apache-2.0
// The command line of the simulator: the thinnest layer.
#include "phases/outcome.hpp"
#include "plan/parse.hpp"
#include "records/text.hpp"
#include "runs/offer.hpp"
#include "system/given_file.hpp"
#include "virtual/simulation.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

namespace {

using namespace sonde;

struct Words {
    std::string plan, system, mount;
    std::vector<std::string> faults;
    simulate::SimulationOptions options;
};

int run(Words& words) {
    for (const std::string& fault : words.faults) {
        words.options.faults.push_back(simulate::parse_fault(fault));
    }
    plan::Plan plan = plan::parse_plan(simulate::text_of_file(words.plan, "plan"), runs::offer());
    simulate::SiteModel site = simulate::read_site(simulate::text_of_file(words.system, "system"), words.mount);
    if (words.options.run_id.empty()) {
        words.options.run_id = "simulated-" + plan.id;
    }
    simulate::Simulation simulation(std::move(plan), std::move(site), words.options);
    return simulation.run();
}

int list_faults() {
    for (const simulate::FaultRule& rule : simulate::fault_rules) {
        std::string form = rule.name;
        form += *rule.part == 0 ? "" : " <" + std::string(rule.part) + ">";
        form += *rule.amount == 0 ? "" : " [" + std::string(rule.amount) + "]";
        std::printf("%-44s %s\n", form.c_str(), rule.meaning);
    }
    return 0;
}

int run_simulator(int argc, char** argv) {
    CLI::App app("Runs a plan on a described machine in virtual time.", "sonde-simulate");
    app.require_subcommand(1);
    Words words;
    for (int i = 0; i < argc; ++i) {
        words.options.command += (i > 0 ? " " : "") + std::string(argv[i]);
    }
    CLI::App* run_command = app.add_subcommand("run", "simulate a plan and write its record");
    run_command->add_option("plan", words.plan, "plan (JSON)")->required();
    run_command->add_option("--system", words.system, "resolved system (JSON)")->required();
    run_command->add_option("--mount", words.mount, "mount or file system; default: the first that can be simulated");
    run_command->add_option("--record", words.options.record, "where the record goes; - is standard output");
    run_command->add_option("--run-id", words.options.run_id, "names the run");
    run_command->add_option("--started", words.options.started, "when it began, UTC, as 2014-08-23T12:00:00Z");
    run_command->add_option("--traces", words.options.traces, "folder for counters of servers and their messages");
    run_command->add_option("--processes", words.options.processes, "instead of the plan's")
        ->check(CLI::Range(1, 10000000));
    run_command->add_option("--nodes", words.options.nodes, "nodes to use")->check(CLI::Range(1, 10000000));
    run_command->add_option("--seed", words.options.seed, "of everything that is left to chance");
    run_command->add_option("--fault", words.faults, "what is wrong, as `slow-target 3 10x`; may be repeated")
        ->expected(1)
        ->take_all();
    CLI::App* faults_command = app.add_subcommand("faults", "list what may be wrong");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& error) {
        records::complain(std::string(error.what()) + "; `sonde-simulate --help` explains");
        return phases::exit_plan;
    }
    if (faults_command->parsed()) {
        return list_faults();
    }
    try {
        return run(words);
    } catch (const plan::PlanError& error) {
        records::complain(error.what());
        return phases::exit_plan;
    } catch (const simulate::SiteError& error) {
        records::complain(error.what());
        return phases::exit_plan;
    } catch (const std::exception& error) {
        records::complain(error.what());
        return phases::exit_environment;
    }
}

}  // namespace

int main(int argc, char** argv) {
    records::speak_as("sonde-simulate");
    try {
        return run_simulator(argc, argv);
    } catch (...) {
        // Nothing is expected to come here; if it does, it is not a reason to abort.
        static_cast<void>(std::fputs("sonde-simulate: an unknown failure\n", stderr));
    }
    return phases::exit_environment;
}
