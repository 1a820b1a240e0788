// SPDX-License-Identifier: Apache-2.0
#include "plan/schema.hpp"

#include "plan/declare_amount.hpp"
#include "plan/declare_plan.hpp"

namespace sonde::plan {
namespace {

/// The schema of one table. Members of overrides have no defaults.
class SchemaWriter final : public Visitor {
 public:
    SchemaWriter(const Capabilities& capabilities, bool with_defaults)
        : Visitor(capabilities), with_defaults_(with_defaults) {}

    void overrides(bool /*applies*/, const DescribeMembers& members) override {
        const bool before = with_defaults_;
        with_defaults_ = false;
        members(*this);
        with_defaults_ = before;
    }

    static ordered_json build(const DescribeMembers& members, const Capabilities& capabilities, bool with_defaults) {
        SchemaWriter writer(capabilities, with_defaults);
        members(writer);
        ordered_json schema{
            {"type", "object"}, {"additionalProperties", false}, {"properties", std::move(writer.properties_)}};
        if (!writer.required_.empty()) {
            schema["required"] = std::move(writer.required_);
        }
        return schema;
    }

 protected:
    void visit_member(const Member& member) override {
        ordered_json property = member.json_schema();
        add_meaning(property, member.meaning);
        if (ordered_json value = with_defaults_ ? member.make_default() : ordered_json(); !value.is_null()) {
            property["default"] = std::move(value);
        }
        for (const char* replaced : member.rules.replaces) {
            if (replaced != nullptr) {
                property["instead_of"].push_back(replaced);
            }
        }
        add_property(member.key, std::move(property), member.rules.required || member.rules.required_by_schema);
    }

    void visit_table(const Table& table) override {
        ordered_json form = build(table.members, capabilities(), with_defaults_);
        add_meaning(form, table.meaning);
        if (table.rules.not_empty) {
            form["minProperties"] = 1;
        }
        add_property(table.key, std::move(form), table.rules.required);
    }

    void visit_list(const List& list) override {
        ordered_json form{{"type", "array"}};
        if (list.rules.min_entries > 0) {
            form["minItems"] = list.rules.min_entries;
        }
        if (list.rules.max_entries > 0) {
            form["maxItems"] = list.rules.max_entries;
        }
        form["items"] =
            build([&list](Visitor& visitor) { list.describe_entry(visitor, 0); }, capabilities(), with_defaults_);
        add_meaning(form, list.meaning);
        if (list.rules.replaces != nullptr) {
            form["instead_of"].push_back(list.rules.replaces);
        }
        add_property(list.key, std::move(form), list.rules.required);
    }

 private:
    static void add_meaning(ordered_json& form, const char* meaning) {
        if (*meaning != '\0') {
            form["description"] = meaning;
        }
    }

    void add_property(const char* key, ordered_json form, bool is_required) {
        properties_[key] = std::move(form);
        if (is_required) {
            required_.push_back(key);
        }
    }

    bool with_defaults_;
    ordered_json properties_ = ordered_json::object();
    ordered_json required_ = ordered_json::array();
};

/// A number, or text with a unit.
ordered_json quantity_form(const ordered_json& number, const char* units) {
    return {{"anyOf", {number, {{"type", "string"}, {"pattern", std::string("^[0-9]+(\\.[0-9]+)? *") + units + "$"}}}}};
}

ordered_json build_definitions(const Capabilities& capabilities) {
    Amount amount;
    return {
        {"bytes", quantity_form({{"type", "integer"}, {"minimum", 0}}, "(B|kB|MB|GB|TB|PB|KiB|MiB|GiB|TiB|PiB)")},
        {"duration", quantity_form({{"type", "number"}, {"minimum", 0}}, "(ns|us|ms|s|min|h)")},
        {"rate", quantity_form({{"type", "number"}, {"exclusiveMinimum", 0}}, "(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)/s")},
        {"amount",
         {{"anyOf",
           {{{"$ref", "#/$defs/bytes"}},
            SchemaWriter::build([&amount](Visitor& visitor) { describe(visitor, amount); }, capabilities, true)}}}}};
}

}  // namespace

ordered_json build_schema(const Capabilities& capabilities) {
    Plan plan;
    ordered_json schema{
        {"$schema", "https://json-schema.org/draft/2020-12/schema"},
        {"$id", "sonde-plan-2"},
        {"title", "Sonde plan, version 2"},
        {"description",
         "What one run does. Bytes are integers or text such as \"4KiB\" (powers of 1024) or \"10kB\" (powers of "
         "1000); a bare letter (4k) is refused. Durations are text such as \"10s\", \"500ms\"; a bare number is "
         "seconds. Members of a phase override those of the plan one by one; `instead_of` names the members that an "
         "override removes, because both together have no meaning."}};
    schema.update(
        SchemaWriter::build([&plan](Visitor& visitor) { describe_plan(visitor, plan, {}); }, capabilities, true));
    schema["$defs"] = build_definitions(capabilities);
    return schema;
}

}  // namespace sonde::plan
