// SPDX-License-Identifier: Apache-2.0
// From IOR's words to settings, and from settings to a plan: pure functions.
#include "dialects/ior/translate.hpp"
#include "dialects/dialect.hpp"
#include "dialects/ior/arguments.hpp"
#include "dialects/ior/results.hpp"
#include "dialects/number.hpp"
#include "plan/parse.hpp"
#include "runs/capabilities.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>

using namespace sonde;
using namespace sonde::dialects::ior;
using nlohmann::ordered_json;

namespace {

IorSettings settings_of(const std::string& line) {
    std::istringstream in(line);
    std::vector<std::string> arguments;
    for (std::string word; in >> word;) {
        arguments.push_back(word);
    }
    std::vector<IorSettings> tests = parse_arguments(arguments);
    REQUIRE(tests.size() == 1);
    check_settings(tests.front(), false);
    return tests.front();
}

/// The plan, read by the engine's own parser, so that every member is one that it knows.
plan::Plan plan_of(const std::string& line, const TaskPlacement& crowd = {}) {
    const IorSettings settings = settings_of(line);
    return plan::parse_plan(translate(settings, crowd, 0, 1000, std::nullopt).plan.dump(),
                            sonde::runs::list_capabilities());
}

std::string ids(const plan::Plan& plan) {
    std::string all;
    for (const plan::Phase& phase : plan.phases) {
        all += (all.empty() ? "" : " ") + phase.id;
    }
    return all;
}

}  // namespace

TEST_CASE("option values have three syntaxes, flags combine") {
    for (const char* line : {"-t 4k -b 1m -wkF", "-t=4k -b=1m -w -k -F=1", "-t4k -b1m -w -kF"}) {
        CAPTURE(line);
        const IorSettings s = settings_of(line);
        CHECK(s.transfer == 4096);
        CHECK(s.block == 1 << 20);
        CHECK(s.write);
        CHECK(s.keep);
        CHECK(s.file_per_process);
        CHECK(!s.read);
        CHECK(!s.multiple_files);
    }
}

TEST_CASE("sizes are powers of 1024 whatever the case of the letter") {
    CHECK(dialects::read_scaled_number("8", "x") == 8);
    CHECK(dialects::read_scaled_number("3k", "x") == 3 << 10);
    CHECK(dialects::read_scaled_number(" 3 M ", "x") == 3 << 20);
    CHECK(dialects::read_scaled_number("-2G", "x") == -(std::int64_t{2} << 30U));
    CHECK(dialects::read_scaled_number("1t", "x") == std::int64_t{1} << 40U);
    CHECK(dialects::read_scaled_number("7p", "x") == std::int64_t{7} << 50U);
    for (const char* same : {"4k", "4K", "4kb", "4kB", "4KiB", "4096", "4096b", "4096.9"}) {
        CAPTURE(same);
        CHECK(dialects::read_scaled_number(same, "x") == 4096);
    }
    CHECK(dialects::read_scaled_number("0.5", "x") == 0);
    CHECK(dialects::read_scaled_number("-1.5", "x") == -1);
    for (const char* wrong : {"", "k", "1.5k", "4kbb", "4ki", "4x", "4 4", "0x10", "9000000p", ".5"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(dialects::read_scaled_number(wrong, "x"), plan::PlanError);
    }
}

TEST_CASE("directives ignore case and comments and may share a line") {
    IorSettings s;
    apply_directives(s, " BLOCKSIZE = 16k, transfersize=4K ,fileperproc=1 # keepFile=1", "here");
    CHECK(s.block == 16384);
    CHECK(s.transfer == 4096);
    CHECK(s.file_per_process);
    CHECK(!s.keep);
    apply_directives(s, "useO_DIRECT=1", "here");
    CHECK(s.direct);
    apply_directives(s, "--posix.odirect=0", "here");
    CHECK(!s.direct);
}

TEST_CASE("default is write and read, options select exactly") {
    CHECK(ids(plan_of("-o f")) == "write-0 read-0 remove-0");
    CHECK(ids(plan_of("-o f -k")) == "write-0 read-0");
    CHECK(ids(plan_of("-o f -r")) == "read-0 remove-0");
    CHECK(ids(plan_of("-o f -W -k")) == "check-0");
    CHECK(ids(plan_of("-o f -w -R -W -k -i 2")) == "write-0 check-0 read-0 write-1 check-1 read-1");
    CHECK(ids(plan_of("-o f -a DUMMY")) == "write-0 read-0");
    CHECK(ids(plan_of("-o f -w -k -z -b 1m -t 4k --randomPrefill=64k")) == "prefill-0 write-0");
}

TEST_CASE("the plan has IOR's geometry, content and files") {
    const plan::Plan plan =
        plan_of("-o /data/f -F -u -m -i 2 -t 10000 -b 1000000 -s 3 -G 5 -l offset -e -g -D 7 -O stoneWallingWearOut=1");
    CHECK(plan.target.path == "/data");
    CHECK(plan.target.use_existing);
    const plan::Phase& write = plan.phases[3];
    CHECK(write.id == "write-1");
    CHECK(write.data.files.mapping == plan::Mapping::per_task);
    CHECK(write.data.files.directories == plan::DirectoryMapping::per_task);
    CHECK(write.data.files.paths == std::vector<std::string>{"/data/f"});
    CHECK(write.data.files.suffix == ".1");
    CHECK(write.data.access.transfer == 10000);
    CHECK(write.data.access.block == 1'000'000);
    CHECK(write.data.access.segments == 3);
    CHECK(write.data.payload.kind == plan::PayloadKind::ior_offset);
    CHECK(write.data.payload.seed == 5);
    CHECK(write.data.io.fsync == plan::Fsync::end);
    CHECK(write.barrier == plan::Barrier::intra);
    CHECK(write.stop.stonewall == 7'000'000'000);
    CHECK(write.stop.wearout);
    CHECK(write.open == plan::OpenMode::truncate);
}

TEST_CASE("content without -G is the time, for random packets nothing") {
    CHECK(plan_of("-o f").data.payload.seed == 1000);
    CHECK(plan_of("-o f -l r").data.payload.seed == 0);
    CHECK(plan_of("-o f -G -1").data.payload.seed == 0xffffffffU);
}

TEST_CASE("-C shifts by tasks of a node, write check one node further") {
    const TaskPlacement blocks{8, 2, 4, true};
    CHECK(plan_of("-o f -w -W -r -C", blocks).phases[2].shift.n == 4);
    CHECK(plan_of("-o f -w -W -r -C", blocks).phases[1].shift.by == plan::ShiftBy::none);  // two nodes on: home again
    CHECK(plan_of("-o f -r -C -Q 2", blocks).phases[0].shift.by == plan::ShiftBy::none);
    const TaskPlacement cyclic{8, 2, 4, false};
    CHECK(plan_of("-o f -r -C", cyclic).phases[0].shift.n == 1);
    CHECK(plan_of("-o f -r -C -Q 3", cyclic).phases[0].shift.n == 3);
    CHECK(plan_of("-o f -r -C", {4, 1, 4, true}).phases[0].shift.by == plan::ShiftBy::none);
}

TEST_CASE("-Z -Z permutes, -Z avoids the same node, seeds repeat both") {
    const TaskPlacement crowd{12, 3, 4, true};
    const auto owners = [&crowd](const char* line, int repetition) {
        return shuffle_owners(settings_of(line), crowd, repetition);
    };
    const std::vector<int> shuffled = owners("-o f -r -Z -Z -X 7", 0);
    CHECK(std::set<int>(shuffled.begin(), shuffled.end()).size() == 12);
    CHECK(shuffled == owners("-o f -r -ZZ -X 7", 1));
    CHECK(shuffled != owners("-o f -r -Z -Z -X 8", 0));
    CHECK(owners("-o f -r -Z -Z -X -7", 0) == shuffled);
    CHECK(owners("-o f -r -Z -Z -X -7", 1) == owners("-o f -r -Z -Z -X 8", 0));
    for (int seed = 0; seed < 20; ++seed) {
        const std::vector<int> random = owners(("-o f -r -Z -X " + std::to_string(seed)).c_str(), 0);
        for (int task = 0; task < 12; ++task) {
            const int offset = (random[static_cast<std::size_t>(task)] - task + 12) % 12;
            CHECK(offset >= 4);
        }
    }
}

TEST_CASE("-N leaves other tasks waiting and is capped") {
    CHECK(plan_of("-o f -N 3", {4, 1, 4, true}).tasks.active == 3);
    CHECK(plan_of("-o f -N 9", {4, 1, 4, true}).tasks.active == 0);
}

TEST_CASE("IOR's deviation is that of the population") {
    const RateSpread spread = compute_spread({2, 4, 4, 4, 5, 5, 7, 9});
    CHECK(spread.mean == doctest::Approx(5));
    CHECK(spread.deviation == doctest::Approx(2));
    CHECK(spread.min == 2);
    CHECK(spread.max == 9);
    CHECK(compute_spread({}).mean == 0);
}

TEST_CASE("any arguments give a valid plan or one sentence") {
    const std::vector<std::string> pieces{"-a",
                                          "POSIX",
                                          "MPIIO",
                                          "DUMMY",
                                          "-b",
                                          "1m",
                                          "-t",
                                          "4k",
                                          "-s",
                                          "3",
                                          "-i",
                                          "2",
                                          "-F",
                                          "-C",
                                          "-Z",
                                          "-z",
                                          "-zz",
                                          "-Q",
                                          "2",
                                          "-D",
                                          "1",
                                          "-O",
                                          "x=1",
                                          "-o",
                                          "d/f",
                                          "a@b",
                                          "-k",
                                          "-K",
                                          "-m",
                                          "-u",
                                          "-R",
                                          "-W",
                                          "-w",
                                          "-r",
                                          "-G",
                                          "-7",
                                          "-l",
                                          "i",
                                          "-N",
                                          "-M",
                                          "50%",
                                          "-e",
                                          "-Y",
                                          "-g",
                                          "-x",
                                          "-T",
                                          "9p",
                                          "-j",
                                          "0",
                                          "-X",
                                          "-3",
                                          "--dryRun",
                                          "-c",
                                          "-E",
                                          "-d",
                                          "-A",
                                          "-B",
                                          "=",
                                          "-t=",
                                          "-=",
                                          "--",
                                          "-",
                                          "",
                                          "--a",
                                          "-wkF",
                                          "8",
                                          "--posix.odirect",
                                          "--aio.max-pending=4",
                                          "--randomPrefill=4k",
                                          "--random-offset-seed=5",
                                          "-O",
                                          "stoneWallingWearOut=1,stoneWallingWearOutIterations=3",
                                          "memoryPerTask=1k,interIODelay=5",
                                          "-OminTimeDuration=1",
                                          "--mpiio.useFileView",
                                          "--mpiio.preallocate",
                                          "-B",
                                          "-v",
                                          "-vvv"};
    std::uint64_t state = 7;
    const auto draw = [&state](std::size_t below) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<std::size_t>((state >> 33U) % below);
    };
    int plans = 0;
    for (int round = 0; round < 4000; ++round) {
        std::vector<std::string> arguments{"-o", "d/f"};
        for (std::size_t count = draw(9); count > 0; --count) {
            arguments.push_back(pieces[draw(pieces.size())]);
        }
        std::string line;
        for (const std::string& word : arguments) {
            line += word + " ";
        }
        CAPTURE(line);
        try {
            for (IorSettings& settings : parse_arguments(arguments)) {
                check_settings(settings, false);
                const TaskPlacement crowd{static_cast<int>(1 + draw(8)), 1, 4, true};
                const Translation translation = translate(settings, crowd, 0, 1000, std::nullopt);
                const plan::Plan plan = plan::parse_plan(translation.plan.dump(), sonde::runs::list_capabilities());
                CHECK(plan.phases.size() == translation.steps.size());
                ++plans;
            }
        } catch (const plan::PlanError& error) {
            CHECK(std::string(error.what()).find('\n') == std::string::npos);
        } catch (const dialects::HelpRequested&) {
            FAIL("no word asks for help");
        }
    }
    CHECK(plans > 500);
}

TEST_CASE("buffers in GPU memory are a member of the plan") {
    const plan::Plan staged = plan_of("-w -r -O allocateBufferOnGPU=1,GPUid=1@0");
    CHECK(staged.phases.front().data.backend == "posix");
    CHECK(staged.phases.front().data.io.gpus == std::vector<int>{1, 0});
    const plan::Plan direct = plan_of("-w -r --gpuDirect --posix.odirect -O allocateBufferOnGPU=3,GPUid=2");
    CHECK(direct.phases.front().data.backend == "cufile");
    CHECK(direct.phases.front().data.io.direct);
    CHECK(direct.phases.front().data.io.gpus == std::vector<int>{2});
    CHECK(plan_of("-w -O GPUid=0").phases.front().data.io.gpus.empty());
}
