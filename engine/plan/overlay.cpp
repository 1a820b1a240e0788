// SPDX-License-Identifier: Apache-2.0
#include "plan/overlay.hpp"

#include "plan/declare_plan.hpp"

#include <map>
#include <string>

namespace sonde::plan {
namespace {

/// Collects the members that exclude each other, by name.
class ReplacementCollector final : public Visitor {
 public:
    explicit ReplacementCollector(const Capabilities& capabilities) : Visitor(capabilities) {}
    void overrides(bool /*applies*/, const DescribeMembers& /*members*/) override {}

    std::multimap<std::string, std::string> replaced_by_member;

 protected:
    void visit_member(const Member& member) override {
        for (const char* replaced : member.rules.replaces) {
            if (replaced != nullptr) {
                replaced_by_member.emplace(member.key, replaced);
            }
        }
    }
    void visit_table(const Table& table) override { table.members(*this); }
    void visit_list(const List& list) override {
        if (list.rules.replaces != nullptr) {
            replaced_by_member.emplace(list.key, list.rules.replaces);
        }
    }
};

std::multimap<std::string, std::string> collect_replacements() {
    Plan plan;
    const Capabilities none;
    ReplacementCollector collector(none);
    describe_plan(collector, plan, {});
    return collector.replaced_by_member;
}

}  // namespace

nlohmann::json overlay_members(const nlohmann::json& base, const nlohmann::json& members) {
    static const std::multimap<std::string, std::string> replacements = collect_replacements();
    nlohmann::json merged = base.is_object() ? base : nlohmann::json::object();
    for (const auto& [member, replaced] : replacements) {
        if (members.contains(member)) {
            merged.erase(replaced);
        }
    }
    merged.update(members);
    return merged;
}

}  // namespace sonde::plan
