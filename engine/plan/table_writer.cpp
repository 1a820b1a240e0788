// SPDX-License-Identifier: Apache-2.0
#include "plan/table_writer.hpp"

namespace sonde::plan {
namespace {

class TableWriter final : public Visitor {
 public:
    explicit TableWriter(const Capabilities& capabilities) : Visitor(capabilities) {}

    void overrides(bool applies, const DescribeMembers& members) override {
        if (applies) {
            members(*this);
        }
    }

    ordered_json out = ordered_json::object();

 protected:
    void visit_member(const Member& member) override {
        ordered_json value = member.resolve();
        if (!value.is_null()) {
            out[member.key] = std::move(value);
        }
    }

    void visit_table(const Table& table) override {
        if (table.rules.resolved == TableRules::Resolved::complete) {
            out[table.key] = resolve_members(table.members);
        } else if (table.rules.resolved == TableRules::Resolved::empty) {
            out[table.key] = ordered_json::object();
        }
    }

    void visit_list(const List& list) override {
        if (list.rules.may_be_empty) {
            out[list.key] = ordered_json::array();
        }
        for (std::size_t i = 0; i < list.entry_count; ++i) {
            out[list.key].push_back(resolve_members([&list, i](Visitor& visitor) { list.describe_entry(visitor, i); }));
        }
    }
};

}  // namespace

ordered_json resolve_members(const DescribeMembers& members) {
    const Capabilities none;
    TableWriter writer(none);
    members(writer);
    return std::move(writer.out);
}

}  // namespace sonde::plan
