// SPDX-License-Identifier: Apache-2.0
// The schema files against the declaration of the plan and the tables of names.
#include "plan/schema.hpp"
#include "backends/backend.hpp"
#include "meters/kinds.hpp"
#include "plan/operations.hpp"
#include "runs/capabilities.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace {

using nlohmann::json;
using Names = std::set<std::string>;

json schema(const char* file) {
    return json::parse(std::ifstream(std::string(SONDE_SCHEMA) + "/" + file));
}

Names names_at(const json& document, const char* pointer) {
    return document.at(json::json_pointer(pointer)).at("enum").get<Names>();
}

}  // namespace

TEST_CASE("plan_schema_file_is_generated_from_declaration") {
    // tools/schemas writes the file.
    const json generated = json::parse(sonde::plan::build_schema(sonde::runs::list_capabilities()).dump());
    const std::string differences = json::diff(generated, schema("plan/plan.schema.json")).dump(1);
    CHECK(differences == "[]");
}

TEST_CASE("operation_table_matches_schemas") {
    Names names;
    for (const sonde::plan::OperationInfo& row : sonde::plan::operations) {
        names.insert(row.name);
        CHECK(sonde::plan::operation_info(row.op).op == row.op);
        CHECK(sonde::plan::find_operation(row.name, sonde::plan::acts_on_tree(row.op)) == row.op);
    }
    CHECK(names == names_at(schema("plan/plan.schema.json"), "/properties/phases/items/properties/op"));
    CHECK(names == names_at(schema("record/record.schema.json"), "/$defs/line_phase_begin/properties/op"));
}

TEST_CASE("find_operation_distinguishes_data_and_trees") {
    CHECK(sonde::plan::find_operation("stat", false) == sonde::plan::Op::stat);
    CHECK(sonde::plan::find_operation("stat", true) == sonde::plan::Op::stat_items);
    CHECK_FALSE(sonde::plan::find_operation("walk", false));
    CHECK_FALSE(sonde::plan::find_operation("write", true));
    CHECK(sonde::plan::list_operation_names(false).size() + sonde::plan::list_operation_names(true).size() ==
          sonde::plan::operations.size());
}

TEST_CASE("latency_kinds_match_record_schema") {
    const Names own(std::begin(sonde::meters::kind_names), std::end(sonde::meters::kind_names));
    CHECK(own.size() == sonde::meters::kinds);
    CHECK(own == names_at(schema("record/record.schema.json"), "/$defs/kind"));
}

TEST_CASE("treatments_match_schemas") {
    Names names;
    for (const sonde::plan::TreatmentCapability& rule : sonde::runs::list_capabilities().treatments) {
        names.insert(std::string(rule.name));
    }
    CHECK(names == names_at(schema("plan/plan.schema.json"),
                            "/properties/phases/items/properties/before/items/properties/kind"));
    CHECK(names == names_at(schema("record/record.schema.json"), "/$defs/line_treatment/properties/kind"));
}

TEST_CASE("plan_rules_use_traits_of_each_backend") {
    const sonde::plan::Capabilities& capabilities = sonde::runs::list_capabilities();
    CHECK(capabilities.backends.size() == sonde::backends::list_backends().size());
    for (const sonde::backends::Backend* backend : sonde::backends::list_backends()) {
        REQUIRE(capabilities.find_backend(backend->name) != nullptr);
        CHECK(capabilities.find_traits(backend->name).stores_data == backend->traits.stores_data);
        CHECK(capabilities.find_traits(backend->name).supports_direct == backend->traits.supports_direct);
    }
    CHECK(capabilities.list_backends_with(&sonde::plan::BackendTraits::needs_mpi) == "mpiio or hdf5 or pnetcdf");
    CHECK(capabilities.list_backends_with(&sonde::plan::BackendTraits::supports_direct) ==
          "posix or io_uring or cufile");
    CHECK(capabilities.list_backends_with(&sonde::plan::BackendTraits::stores_objects) == "s3");
    CHECK(capabilities.list_backends_with(&sonde::plan::BackendTraits::supports_trees).find("s3") == std::string::npos);
    CHECK(capabilities.find_backend("tape") == nullptr);
}
