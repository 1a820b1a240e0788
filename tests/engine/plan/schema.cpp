// SPDX-License-Identifier: Apache-2.0
// The engine's tables of names against the schema, which both languages read.
#include "backends/backend.hpp"
#include "meters/kinds.hpp"
#include "plan/operations.hpp"
#include "runs/offer.hpp"

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

TEST_CASE("the operations of the engine's table are those that plans and records may name") {
    Names own;
    for (const sonde::plan::Operation& row : sonde::plan::operations) {
        own.insert(row.name);
        CHECK(sonde::plan::operation(row.op).op == row.op);
        CHECK(sonde::plan::operation_named(row.name, sonde::plan::on_tree(row.op)) == row.op);
    }
    CHECK(own == names_at(schema("plan/plan.schema.json"), "/properties/phases/items/properties/op"));
    CHECK(own == names_at(schema("record/record.schema.json"), "/$defs/line_phase_begin/properties/op"));
}

TEST_CASE("an operation that no data file knows is found among those of trees, and the other way round") {
    CHECK(sonde::plan::operation_named("stat", false) == sonde::plan::Op::stat);
    CHECK(sonde::plan::operation_named("stat", true) == sonde::plan::Op::stat_items);
    CHECK_FALSE(sonde::plan::operation_named("walk", false));
    CHECK_FALSE(sonde::plan::operation_named("write", true));
    CHECK(sonde::plan::names_of_operations(false).size() + sonde::plan::names_of_operations(true).size() ==
          sonde::plan::operations.size());
}

TEST_CASE("latencies are counted by the kinds that the record may name") {
    const Names own(std::begin(sonde::meters::kind_names), std::end(sonde::meters::kind_names));
    CHECK(own.size() == sonde::meters::kinds);
    CHECK(own == names_at(schema("record/record.schema.json"), "/$defs/kind"));
}

TEST_CASE("the treatments that the engine offers are those that plans and records may name") {
    Names own;
    for (const sonde::plan::TreatmentRule& rule : sonde::runs::offer().treatments) {
        own.insert(std::string(rule.name));
    }
    CHECK(own == names_at(schema("plan/plan.schema.json"),
                          "/properties/phases/items/properties/before/items/properties/kind"));
    CHECK(own == names_at(schema("record/record.schema.json"), "/$defs/line_treatment/properties/kind"));
}

TEST_CASE("a plan's rules know of each backend what it says of itself") {
    const sonde::plan::Offer& offer = sonde::runs::offer();
    CHECK(offer.backends.size() == sonde::backends::list().size());
    for (const sonde::backends::Backend* backend : sonde::backends::list()) {
        REQUIRE(offer.backend(backend->name) != nullptr);
        CHECK(offer.traits_of(backend->name).stores_data == backend->traits.stores_data);
        CHECK(offer.traits_of(backend->name).direct == backend->traits.direct);
    }
    CHECK(offer.backends_with(&sonde::plan::Traits::mpi) == "mpiio");
    CHECK(offer.backends_with(&sonde::plan::Traits::direct) == "posix or io_uring");
    CHECK(offer.backend("tape") == nullptr);
}
