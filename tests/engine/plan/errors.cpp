// SPDX-License-Identifier: Apache-2.0
// A wrong plan is refused with one sentence that names the member and what to write instead.
#include "plan/parse.hpp"
#include "runs/capabilities.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

using nlohmann::json;
using sonde::plan::parse_plan;
using sonde::plan::Plan;
using sonde::plan::PlanError;

namespace {

json make_valid_plan() {
    return json::parse(R"({
        "schema": "sonde-plan/2", "id": "p", "target": {"path": "/tmp"},
        "data": {"access": {"transfer": "4KiB", "block": "1MiB", "segments": 2}},
        "phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}]})");
}

/// The refusal of a good plan with `value` put at `pointer`; empty when it is accepted.
std::string error_of_member(const char* pointer, const json& value) {
    json plan = make_valid_plan();
    plan[json::json_pointer(pointer)] = value;
    try {
        parse_plan(plan.dump(), sonde::runs::list_capabilities());
    } catch (const PlanError& error) {
        return error.what();
    }
    return "";
}

std::string error_of_plan_text(const std::string& text) {
    try {
        parse_plan(text, sonde::runs::list_capabilities());
    } catch (const PlanError& error) {
        return error.what();
    }
    return "";
}

struct RejectedMember {
    const char* pointer;
    json value;
    const char* expected_text;  ///< part of the sentence
};

}  // namespace

TEST_CASE("valid_plan_has_explicit_and_default_values") {
    const Plan plan = parse_plan(make_valid_plan().dump(), sonde::runs::list_capabilities());
    CHECK(plan.phases.size() == 2);
    CHECK(plan.phases[0].data.access.transfer == 4096);
    CHECK(plan.phases[0].data.access.segments == 2);
    CHECK(plan.phases[0].data.backend == "posix");
    CHECK(plan.phases[0].open == sonde::plan::OpenMode::truncate);
    CHECK(plan.phases[1].open == sonde::plan::OpenMode::overwrite);
    CHECK(plan.tasks.processes == 1);
    CHECK(plan.observe.slice == 1'000'000);
    CHECK(plan.observe.max_slices == 512);
}

TEST_CASE("wrong_member_is_reported_with_path") {
    const RejectedMember table[] = {
        {"/schema", "sonde-plan/3", "schema is \"sonde-plan/3\", but this engine reads \"sonde-plan/2\""},
        {"/id", "", "id is \"\", but must be 1 to 100 letters"},
        {"/id", "../x", "id is \"../x\""},
        {"/target/path", "", "target.path must name a directory"},
        {"/target/directory", "a/b", "target.directory must be one name without '/'"},
        {"/target/kept", true, "target.kept is not known; did you mean keep?"},
        {"/target/min_free", "4k", "target.min_free is wrong: '4k' is ambiguous"},
        {"/target/min_free", "18446744073709551615", "target.min_free is wrong"},
        {"/tasks", {{"threads", 0}}, "tasks.threads is 0, but must be a whole number from 1 to 4096"},
        {"/tasks", {{"processes", 1.5}}, "tasks.processes is 1.5"},
        {"/data/access/transfer", 0, "data.access.transfer must be from 1 B"},
        {"/data/access/transfer", "2GiB", "transfer must be from 1 B to 1 GiB"},
        {"/data/access/block", 5000, "access.block is 5000 B, but must be a multiple of transfer (4096 B)"},
        {"/data/access/volume", "1MiB", "segments and volume exclude each other"},
        {"/data/access/segments", 0, "access.segments is 0, but must be a whole number from 1 up"},
        {"/data/access/order", "backwards", "but must be one of sequential, reverse, stride"},
        {"/data/access/order", "stride", "access.stride must be at least transfer (4096 B): transfers would overlap"},
        {"/data/access/stride", "8KiB", "access.stride is only used with order = \"stride\""},
        {"/data/access/read_ratio", 0.5, "access.read_ratio is only used with op = \"mixed\""},
        {"/data/files", {{"mapping", "per_group"}}, "group_size is missing"},
        {"/data/files", {{"count", 3}}, "count is only used with mapping = \"many\""},
        {"/data/files", {{"name", "a/b"}}, "name must be a plain file name"},
        {"/data/io", {{"sqpoll", true}}, "io.sqpoll needs backend io_uring, not \"posix\""},
        {"/data/io", {{"iopoll", true}}, "io.iopoll needs backend io_uring, not \"posix\""},
        {"/data/io", {{"collective", true}}, "io.collective needs backend mpiio or hdf5 or pnetcdf, not \"posix\""},
        {"/data/io", {{"queue_depth", 0}}, "queue_depth is 0"},
        {"/data/verify", "always", "verify is \"always\", but must be one of none, on_read, readback, both"},
        {"/data/payload", {{"compressible", 1.5}}, "compressible is 1.5, but must be a number from 0.0 to 1.0"},
        {"/data/paced", {{"rate", "0MB/s"}}, "rate is wrong: '0MB/s' must be more than zero"},
        {"/data/paced", {{"schedule", {{{"at", "1s"}, {"rate", "1MB/s"}}}}}, "schedule must begin at 0"},
        {"/phases", json::array(), "phases is [], but must be a list with at least one entry"},
        {"/phases/1/id", "w", "phases[1].id \"w\" is used twice"},
        {"/phases/1/data_of", "x", "phases[1].data_of names \"x\", but no earlier phase of that name writes"},
        {"/phases/0/op", "read", "phases[0].op is \"read\", but no earlier phase writes the data"},
        {"/phases/1/op", "mixed", "phases[1].access.read_ratio is missing"},
        {"/phases/0/shift", {{"by", "tasks"}}, "phases[0].shift is for reads"},
        {"/phases/0/stop", {{"wearout", true}}, "phases[0].stop.wearout needs stop.stonewall"},
        {"/phases/0/stop", {{"time", "1s"}, {"stonewall", "1s"}}, "stop.time stands alone"},
        {"/phases/0/stop", {{"time", 0}}, "stop.time must be more than zero"},
        {"/phases/0/before", {{{"kind", "sleep"}}}, "before[0].time is missing"},
        {"/phases/0/process", "separate", "has no meaning for the first phase"},
        {"/phases/0/streams", {{{"id", "a"}, {"op", "write"}}}, "streams are only used with op = \"duplex\""},
        {"/observe", {{"slice", "1ns"}}, "observe.slice must be from 1 us to 1 min"},
        {"/observe", {{"max_slices", 3}}, "max_slices is 3"},
        {"/limits", {{"time", 0}}, "limits.time must be more than zero"},
    };
    for (const RejectedMember& wrong : table) {
        const std::string sentence = error_of_member(wrong.pointer, wrong.value);
        CAPTURE(wrong.pointer);
        CAPTURE(wrong.value.dump());
        CAPTURE(sentence);
        CHECK(sentence.rfind("plan: ", 0) == 0);
        CHECK(sentence.find(wrong.expected_text) != std::string::npos);
        CHECK(sentence.find('\n') == std::string::npos);
    }
}

TEST_CASE("offsets_beyond_largest_file_are_rejected") {
    json plan = make_valid_plan();
    plan["data"]["access"] = {
        {"transfer", "1MiB"}, {"block", "1MiB"}, {"segments", 1'000'000}, {"order", "stride"}, {"stride", "1PiB"}};
    CHECK(error_of_plan_text(plan.dump()).find("largest file") != std::string::npos);
    plan["data"]["access"] = {{"transfer", 1}, {"block", 1}, {"segments", 3'000'000'000'000LL}, {"gap", "1PiB"}};
    CHECK(error_of_plan_text(plan.dump()).find("largest file") != std::string::npos);
    plan["data"]["access"] = {{"transfer", 1}, {"block", 1}, {"segments", 1}, {"offset", "4095PiB"}};
    plan["tasks"] = {{"threads", 4096}, {"processes", 65'536}};
    plan["data"]["files"] = {{"mapping", "shared"}};
    plan["data"]["access"]["gap"] = "4PiB";
    CHECK(error_of_plan_text(plan.dump()).find("largest file") != std::string::npos);
}

TEST_CASE("timed_phase_on_timeless_storage_is_rejected") {
    json plan = make_valid_plan();
    plan["data"]["backend"] = "paced";
    plan["phases"][0]["stop"] = {{"time", "1s"}};
    CHECK(error_of_plan_text(plan.dump()).find("paced") != std::string::npos);
    plan["phases"][0]["stop"] = {{"min_time", "1s"}};
    CHECK(error_of_plan_text(plan.dump()).find("paced") != std::string::npos);
    plan["data"]["paced"] = {{"latency", "1us"}};
    CHECK(error_of_plan_text(plan.dump()) == "");
}

TEST_CASE("first_done_with_virtual_clock_is_rejected") {
    json plan = make_valid_plan();
    plan["data"]["backend"] = "paced";
    plan["data"]["paced"] = {{"rate", "1MB/s"}};
    plan["tasks"] = {{"threads", 2}};
    plan["phases"][0]["stop"] = {{"first_done", true}};
    CHECK(error_of_plan_text(plan.dump()).find("stop.first_done") != std::string::npos);
    plan["data"]["paced"]["virtual_clock"] = false;
    CHECK(error_of_plan_text(plan.dump()) == "");
}

TEST_CASE("reading_replaced_data_is_rejected") {
    json plan = make_valid_plan();
    plan["data"]["files"] = {{"mapping", "many"}, {"count", 4}};
    plan["phases"] = json::parse(R"([{"id": "a", "op": "write"}, {"id": "b", "op": "write", "files": [0, 1]},
                                     {"id": "r", "op": "read", "data_of": "a"}])");
    CHECK(error_of_plan_text(plan.dump()) ==
          "plan: phases[2].data_of names \"a\", but phase \"b\" makes the files anew before: name that one, or give it "
          "open = \"overwrite\"");
    plan["phases"][2]["files"] = {2, 3};
    CHECK(error_of_plan_text(plan.dump()) == "");
    plan["phases"][2]["files"] = {3, 1};
    CHECK(error_of_plan_text(plan.dump()) != "");
    plan["phases"][1]["open"] = "overwrite";
    CHECK(error_of_plan_text(plan.dump()) == "");
    plan["phases"][1]["op"] = "rewrite";
    CHECK(error_of_plan_text(plan.dump()) == "");
}

TEST_CASE("invalid_json_is_reported_with_position") {
    CHECK(error_of_plan_text("").find("the plan is empty") != std::string::npos);
    CHECK(error_of_plan_text("{\"schema\": }").find("not JSON: line 1, column 12") != std::string::npos);
    CHECK(error_of_plan_text("[]").find("must be a JSON object") != std::string::npos);
    CHECK(error_of_plan_text("{\"schema\": 1e999}").find("number beyond") != std::string::npos);
    CHECK(error_of_plan_text(std::string(100'000, '[')).find("nested more than 64 levels") != std::string::npos);
    CHECK(error_of_plan_text("{\"schema\":\"sonde-plan/2\",\"id\":\"\xff\xfe\"}") != "");
}

TEST_CASE("quoted_plan_text_has_no_control_characters") {
    const std::string sentence = error_of_member("/data/verify", "on\nread\x1b[2J");
    CHECK(sentence != "");
    CHECK(std::none_of(sentence.begin(), sentence.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }));
}

TEST_CASE("phase_access_is_merged_and_errors_name_the_phase") {
    json plan = make_valid_plan();
    plan["phases"][1]["access"] = {{"transfer", "64KiB"}, {"volume", "10MiB"}, {"order", "random_permute"}};
    const Plan read = parse_plan(plan.dump(), sonde::runs::list_capabilities());
    CHECK(read.phases[1].data.access.transfer == 65'536);
    CHECK(read.phases[1].data.access.block == 1U << 20U);  // the phase names none, so the plan's stays
    CHECK_FALSE(read.phases[1].data.access.segments);
    CHECK(read.phases[1].data.access.volume->bytes == 10U << 20U);
    CHECK(read.phases[0].data.access.transfer == 4096);
    plan["phases"][1]["access"] = {{"tranfer", "64KiB"}};
    CHECK(error_of_plan_text(plan.dump()).find("phases[1].access.tranfer is not known; did you mean transfer?") !=
          std::string::npos);
}
