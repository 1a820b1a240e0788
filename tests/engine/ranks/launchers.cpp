// SPDX-License-Identifier: Apache-2.0
// What environments of launchers say. Those of hydra, Open MPI and Slurm were read off the real launchers; those of
// Flux, jsrun and of bare PMIx were written from their documentation and have not been tried.
#include "ranks/launcher.hpp"
#include "ranks/mpi_loader.hpp"
#include "ranks/node_map.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <map>

using namespace sonde::ranks;

namespace {

Launched in(const std::map<std::string, std::string>& environment) {
    return launched([&](const std::string& name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        return found != environment.end() ? std::optional(found->second) : std::nullopt;
    });
}

std::map<std::string, std::string> with(std::map<std::string, std::string> base, const std::string& name,
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

TEST_CASE("no launcher, one process") {
    const Launched found = in({{"HOME", "/"}});
    CHECK(found.by == "none");
    CHECK(found.processes == 1);
    CHECK(found.one_node());
}

TEST_CASE("Open MPI says everything") {
    const Launched found = in(openmpi);
    CHECK(found.by == "openmpi");
    CHECK(found.process == 2);
    CHECK(found.processes == 3);
    CHECK(found.local == 2);
    CHECK(found.job == "openmpi-1128857601");
    CHECK(found.pmix);
    CHECK(found.one_node());
    CHECK_FALSE(in(with(openmpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "2")).one_node());
}

TEST_CASE("hydra over two nodes") {
    const Launched found = in(hydra);
    CHECK(found.by == "hydra");
    CHECK(found.process == 1);
    CHECK(found.processes == 4);
    CHECK(found.locals == 2);
    CHECK_FALSE(found.pmix);
    CHECK_FALSE(found.one_node());
}

TEST_CASE("hydra's job is its proxy: without one among our ancestors there is nothing to meet by") {
    const Launched found = in(with(hydra, "MPI_LOCALNRANKS", "4"));
    CHECK(found.locals == found.processes);
    CHECK(found.job.empty());
    CHECK_FALSE(found.one_node());
}

TEST_CASE("a Slurm step on one node, and on two") {
    const Launched found = in(slurm);
    CHECK(found.by == "slurm");
    CHECK(found.process == 5);
    CHECK(found.job == "slurm-77.3");
    CHECK(found.one_node());
    CHECK_FALSE(in(with(slurm, "SLURM_STEP_NUM_NODES", "2")).one_node());
}

TEST_CASE("a Slurm batch script is no step: its numbers are not ranks") {
    auto batch = slurm;
    batch.erase("SLURM_STEP_ID");
    batch.erase("PMI_RANK");
    CHECK(in(batch).by == "none");
}

TEST_CASE("hydra inside a Slurm step is hydra") {
    auto both = slurm;
    both.insert(hydra.begin(), hydra.end());
    CHECK(in(both).by == "hydra");
}

TEST_CASE("a task of Flux on one node, and on two") {
    const std::map<std::string, std::string> flux{{"FLUX_TASK_RANK", "1"},
                                                  {"FLUX_JOB_SIZE", "4"},
                                                  {"FLUX_JOB_NNODES", "1"},
                                                  {"FLUX_TASK_LOCAL_ID", "1"},
                                                  {"FLUX_JOB_ID", "f2Kx9"}};
    const Launched found = in(flux);
    CHECK(found.by == "flux");
    CHECK(found.process == 1);
    CHECK(found.processes == 4);
    CHECK(found.job == "flux-f2Kx9");
    CHECK(found.one_node());
    CHECK_FALSE(in(with(flux, "FLUX_JOB_NNODES", "2")).one_node());
}

TEST_CASE("a task of jsrun") {
    const Launched found = in({{"JSM_NAMESPACE_RANK", "5"},
                               {"JSM_NAMESPACE_SIZE", "8"},
                               {"JSM_NAMESPACE_LOCAL_RANK", "1"},
                               {"JSM_NAMESPACE_LOCAL_SIZE", "4"},
                               {"LSB_JOBID", "311"}});
    CHECK(found.by == "jsrun");
    CHECK(found.process == 5);
    CHECK(found.locals == 4);
    CHECK(found.job == "jsrun-311.0");
    CHECK_FALSE(found.one_node());
}

TEST_CASE("a bare PMIx server leaves the counts to MPI") {
    const Launched found = in({{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "prte.1"}});
    CHECK(found.by == "pmix");
    CHECK(found.process == 3);
    CHECK(found.processes == -1);
    CHECK_FALSE(found.one_node());
}

TEST_CASE("numbers that make no sense are no launcher") {
    CHECK(in(with(openmpi, "OMPI_COMM_WORLD_RANK", "3")).by == "pmix");
    CHECK(in(with(hydra, "PMI_SIZE", "0")).by == "none");
    CHECK(in(with(hydra, "PMI_RANK", "-1")).by == "none");
    CHECK(in(with(hydra, "PMI_RANK", "1x")).by == "none");
    CHECK(in(with(hydra, "PMI_SIZE", "99999999999999999999")).by == "none");
}

TEST_CASE("processes are sorted into nodes by what they say of themselves") {
    std::vector<Identity> all(6);
    const std::array<std::uint64_t, 6> machines{70, 50, 70, 60, 50, 70};
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].machine = machines[i];
        all[i].token = 1000 + i;
        std::strcpy(all[i].host.data(), ("host" + std::to_string(machines[i])).c_str());
    }
    const NodeMap five = map_nodes(all, 5);
    CHECK(five.place.node_of == std::vector<int>{0, 1, 0, 2, 1, 0});
    CHECK(five.leaders == std::vector<int>{0, 1, 3});
    CHECK(five.place.nodes == 3);
    CHECK(five.place.node == 0);
    CHECK(five.place.local == 2);
    CHECK(five.place.locals == 3);
    CHECK(five.place.host == "host70");
    CHECK(five.token == 1000);
    const NodeMap four = map_nodes(all, 4);
    CHECK(four.place.local == 1);
    CHECK(four.place.node == 1);
    CHECK(four.token == 1001);
    CHECK_FALSE(four.place.leader());
    CHECK(map_nodes(all, 3).place.leader());
}

TEST_CASE("this process knows itself again") {
    const Identity one = Identity::mine();
    const Identity two = Identity::mine();
    CHECK(one.machine == two.machine);
    CHECK(one.token != two.token);
    CHECK(one.host[0] != '\0');
}

TEST_CASE("a module that cannot be used says why") {
    const auto complaint = [](const ModuleSearch& search) -> std::string {
        try {
            load_module(search);
            return "loaded";
        } catch (const TeamError& error) {
            return error.what();
        }
    };
    CHECK(complaint({"/nowhere/module.so", Prefer::standard, {}}).find("module.so: ") != std::string::npos);
    CHECK(complaint({"libm.so.6", Prefer::standard, {}}).find("is not an MPI module of Sonde") != std::string::npos);
    const std::string none = complaint({"", Prefer::standard, {"/nowhere"}});
    CHECK(none.find("no MPI module was built or found in /nowhere") != std::string::npos);
}
