// SPDX-License-Identifier: Apache-2.0
// Detection of launchers from their environment variables. Those of hydra, Open MPI and Slurm were read off the real
// launchers; those of Flux, jsrun and of bare PMIx were written from their documentation and have not been tried.
#include "ranks/launcher.hpp"
#include "ranks/mpi_loader.hpp"
#include "ranks/node_map.hpp"
#include "ranks/team_error.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <map>

using namespace sonde::ranks;

namespace {

LaunchEnvironment detect_launch_in(const std::map<std::string, std::string>& environment) {
    return detect_launch([&](const std::string& name) -> std::optional<std::string> {
        const auto variable = environment.find(name);
        return variable != environment.end() ? std::optional(variable->second) : std::nullopt;
    });
}

std::map<std::string, std::string> replace_variable(std::map<std::string, std::string> base, const std::string& name,
                                                    const std::string& value) {
    base[name] = value;
    return base;
}

const std::map<std::string, std::string> openmpi{{"OMPI_COMM_WORLD_RANK", "2"},
                                                 {"OMPI_COMM_WORLD_SIZE", "3"},
                                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                                                 {"PMIX_RANK", "2"},
                                                 {"PMIX_NAMESPACE", "1128857601"}};
const std::map<std::string, std::string> hydra{
    {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}, {"PMI_FD", "9"}};
const std::map<std::string, std::string> slurm{
    {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "3"},        {"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"},
    {"SLURM_LOCALID", "5"}, {"SLURM_STEP_NUM_NODES", "1"}, {"PMI_RANK", "5"},     {"PMI_SIZE", "8"}};

}  // namespace

TEST_CASE("no_launcher_means_one_process") {
    const LaunchEnvironment environment = detect_launch_in({{"HOME", "/"}});
    CHECK(environment.launcher == "none");
    CHECK(environment.processes == 1);
    CHECK(environment.is_one_node());
}

TEST_CASE("openmpi_sets_all_counts") {
    const LaunchEnvironment environment = detect_launch_in(openmpi);
    CHECK(environment.launcher == "openmpi");
    CHECK(environment.process == 2);
    CHECK(environment.processes == 3);
    CHECK(environment.local_index == 2);
    CHECK(environment.job == "openmpi-1128857601");
    CHECK(environment.pmix);
    CHECK(environment.is_one_node());
    CHECK_FALSE(detect_launch_in(replace_variable(openmpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "2")).is_one_node());
}

TEST_CASE("hydra_on_two_nodes") {
    const LaunchEnvironment environment = detect_launch_in(hydra);
    CHECK(environment.launcher == "hydra");
    CHECK(environment.process == 1);
    CHECK(environment.processes == 4);
    CHECK(environment.local_count == 2);
    CHECK_FALSE(environment.pmix);
    CHECK_FALSE(environment.is_one_node());
}

TEST_CASE("hydra_without_proxy_ancestor_has_no_job_name") {
    const LaunchEnvironment environment = detect_launch_in(replace_variable(hydra, "MPI_LOCALNRANKS", "4"));
    CHECK(environment.local_count == environment.processes);
    CHECK(environment.job.empty());
    CHECK_FALSE(environment.is_one_node());
}

TEST_CASE("slurm_step_detects_a_single_node_and_two_nodes") {
    const LaunchEnvironment environment = detect_launch_in(slurm);
    CHECK(environment.launcher == "slurm");
    CHECK(environment.process == 5);
    CHECK(environment.job == "slurm-77.3");
    CHECK(environment.is_one_node());
    CHECK_FALSE(detect_launch_in(replace_variable(slurm, "SLURM_STEP_NUM_NODES", "2")).is_one_node());
}

TEST_CASE("slurm_batch_script_is_not_a_step") {
    auto batch = slurm;
    batch.erase("SLURM_STEP_ID");
    batch.erase("PMI_RANK");
    CHECK(detect_launch_in(batch).launcher == "none");
}

TEST_CASE("hydra_in_slurm_step_is_hydra") {
    auto both = slurm;
    both.insert(hydra.begin(), hydra.end());
    CHECK(detect_launch_in(both).launcher == "hydra");
}

TEST_CASE("flux_task_detects_a_single_node_and_two_nodes") {
    const std::map<std::string, std::string> flux{{"FLUX_TASK_RANK", "1"},
                                                  {"FLUX_JOB_SIZE", "4"},
                                                  {"FLUX_JOB_NNODES", "1"},
                                                  {"FLUX_TASK_LOCAL_ID", "1"},
                                                  {"FLUX_JOB_ID", "f2Kx9"}};
    const LaunchEnvironment environment = detect_launch_in(flux);
    CHECK(environment.launcher == "flux");
    CHECK(environment.process == 1);
    CHECK(environment.processes == 4);
    CHECK(environment.job == "flux-f2Kx9");
    CHECK(environment.is_one_node());
    CHECK_FALSE(detect_launch_in(replace_variable(flux, "FLUX_JOB_NNODES", "2")).is_one_node());
}

TEST_CASE("jsrun_task") {
    const LaunchEnvironment environment = detect_launch_in({{"JSM_NAMESPACE_RANK", "5"},
                                                            {"JSM_NAMESPACE_SIZE", "8"},
                                                            {"JSM_NAMESPACE_LOCAL_RANK", "1"},
                                                            {"JSM_NAMESPACE_LOCAL_SIZE", "4"},
                                                            {"LSB_JOBID", "311"}});
    CHECK(environment.launcher == "jsrun");
    CHECK(environment.process == 5);
    CHECK(environment.local_count == 4);
    CHECK(environment.job == "jsrun-311.0");
    CHECK_FALSE(environment.is_one_node());
}

TEST_CASE("bare_pmix_server_leaves_counts_to_mpi") {
    const LaunchEnvironment environment = detect_launch_in({{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "prte.1"}});
    CHECK(environment.launcher == "pmix");
    CHECK(environment.process == 3);
    CHECK(environment.processes == -1);
    CHECK_FALSE(environment.is_one_node());
}

TEST_CASE("invalid_numbers_mean_no_launcher") {
    CHECK(detect_launch_in(replace_variable(openmpi, "OMPI_COMM_WORLD_RANK", "3")).launcher == "pmix");
    CHECK(detect_launch_in(replace_variable(hydra, "PMI_SIZE", "0")).launcher == "none");
    CHECK(detect_launch_in(replace_variable(hydra, "PMI_RANK", "-1")).launcher == "none");
    CHECK(detect_launch_in(replace_variable(hydra, "PMI_RANK", "1x")).launcher == "none");
    CHECK(detect_launch_in(replace_variable(hydra, "PMI_SIZE", "99999999999999999999")).launcher == "none");
}

TEST_CASE("processes_are_grouped_into_nodes_by_identity") {
    std::vector<ProcessIdentity> all(6);
    const std::array<std::uint64_t, 6> machines{70, 50, 70, 60, 50, 70};
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].machine = machines[i];
        all[i].token = 1000 + i;
        std::strcpy(all[i].listed_name.data(), ("listed" + std::to_string(i)).c_str());
        std::strcpy(all[i].host.data(), ("host" + std::to_string(machines[i])).c_str());
    }
    const NodeMap five = map_nodes(all, 5);
    CHECK(five.location.node_of == std::vector<int>{0, 1, 0, 2, 1, 0});
    CHECK(five.leaders == std::vector<int>{0, 1, 3});
    CHECK(five.location.nodes == 3);
    CHECK(five.location.node == 0);
    CHECK(five.location.local_index == 2);
    CHECK(five.location.local_count == 3);
    CHECK(five.location.host == "host70");
    CHECK(five.token == 1000);
    CHECK(five.node_names == std::vector<std::string>{"listed0", "listed1", "listed3"});
    const NodeMap four = map_nodes(all, 4);
    CHECK(four.location.local_index == 1);
    CHECK(four.location.node == 1);
    CHECK(four.token == 1001);
    CHECK_FALSE(four.location.is_leader());
    CHECK(map_nodes(all, 3).location.is_leader());
}

TEST_CASE("process_identity_has_a_stable_machine_and_a_unique_token") {
    const ProcessIdentity identity = ProcessIdentity::of_this_process();
    const ProcessIdentity two = ProcessIdentity::of_this_process();
    CHECK(identity.machine == two.machine);
    CHECK(identity.token != two.token);
    CHECK(identity.host[0] != '\0');
    CHECK(std::string(identity.listed_name.data()) == host_name());
    CHECK(std::string(ProcessIdentity::of_this_process("n7").listed_name.data()) == "n7");
    CHECK(std::string(ProcessIdentity::of_this_process(std::string(64, 'n')).listed_name.data()).empty());
}

TEST_CASE("launcher_gives_name_of_node_in_host_list") {
    CHECK(detect_launch_in(replace_variable(hydra, "PMI_HOSTNAME", "n1")).node_name == "n1");
    CHECK(detect_launch_in(replace_variable(openmpi, "PMIX_HOSTNAME", "n2")).node_name == "n2");
    CHECK(detect_launch_in(replace_variable(slurm, "SLURMD_NODENAME", "n3")).node_name == "n3");
    CHECK(detect_launch_in({{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "prte.1"}, {"PMIX_HOSTNAME", "n4"}}).node_name ==
          "n4");
    CHECK(detect_launch_in(hydra).node_name.empty());
}

TEST_CASE("unusable_module_gives_reason") {
    const auto complaint = [](const ModuleSearch& search) -> std::string {
        try {
            load_module(search);
            return "loaded";
        } catch (const TeamError& error) {
            return error.what();
        }
    };
    CHECK(complaint({"/nowhere/module.so", ModulePreference::standard, {}}).find("module.so: ") != std::string::npos);
    CHECK(complaint({"libm.so.6", ModulePreference::standard, {}}).find("is not an MPI module of Sonde") !=
          std::string::npos);
    const std::string none = complaint({"", ModulePreference::standard, {"/nowhere"}});
    CHECK(none.find("no MPI module was built or found in /nowhere") != std::string::npos);
}
