// SPDX-License-Identifier: Apache-2.0
#include "plan/table_reader.hpp"

namespace sonde::plan {
namespace {

class TableReader final : public Visitor {
 public:
    TableReader(const Reader& in, const Capabilities& capabilities) : Visitor(capabilities), in_(in) {}

    void when_reading(const std::function<void(const Reader&)>& rule) override { rule(in_); }

    void overrides(bool /*applies*/, const DescribeMembers& members) override {
        only_names_ = true;
        members(*this);
        only_names_ = false;
    }

 protected:
    void visit_member(const Member& member) override {
        if ((in_.has(member.key) || member.rules.required) && !only_names_) {
            member.read(in_);
        }
    }

    void visit_table(const Table& table) override {
        if (only_names_ || (table.rules.optional && !in_.has(table.key))) {
            in_.has(table.key);
            return;
        }
        const bool must_be_there = table.rules.optional || table.rules.required;
        read_members(must_be_there ? in_.object(table.key) : in_.object_or_empty(table.key), table.members,
                     capabilities());
    }

    void visit_list(const List& list) override {
        if (!list.rules.required && !in_.has(list.key)) {
            return;
        }
        std::size_t i = 0;
        for (const Reader& entry : list.rules.may_be_empty ? in_.list(list.key) : in_.array(list.key)) {
            read_members(
                entry, [&list, i](Visitor& visitor) { list.describe_entry(visitor, i); }, capabilities());
            ++i;
        }
    }

 private:
    const Reader& in_;
    bool only_names_ = false;
};

}  // namespace

void read_members(const Reader& in, const DescribeMembers& members, const Capabilities& capabilities) {
    TableReader reader(in, capabilities);
    members(reader);
    in.reject_unknown_members();
}

}  // namespace sonde::plan
