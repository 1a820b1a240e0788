// SPDX-License-Identifier: Apache-2.0
// Declaration of the plan: one entry for each member, with key, field, kind of value, meaning and rules. Reader
// (table_reader.hpp), resolved form (resolved.hpp), schema (schema.hpp) and merge (overlay.hpp) are visitors of the
// entries, which are in declare_*.cpp.
#pragma once

#include "plan/capabilities.hpp"
#include "plan/reader.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace sonde::plan {

using nlohmann::ordered_json;

/// The meaning of an absent member.
enum class Absence {
    initial,   ///< the initial value of its field, which the schema states as default
    unset,     ///< none; the resolved form omits the member while its field is empty or zero
    computed,  ///< a value that follows from other members; the resolved form always states it
};

struct MemberRules {
    Absence absence = Absence::initial;
    bool required = false;
    bool required_by_schema = false;        ///< the reader takes the initial value of the field
    bool resolved = true;                   ///< the resolved form states the member
    std::array<const char*, 2> replaces{};  ///< members that this one excludes: a merge removes them (`instead_of`)
};

inline constexpr MemberRules required{.required = true};
inline constexpr MemberRules required_by_schema{.required_by_schema = true};
inline constexpr MemberRules unset{.absence = Absence::unset};
inline constexpr MemberRules computed{.absence = Absence::computed};

struct TableRules {
    enum class Resolved { complete, absent, empty };
    bool required = false;
    bool optional = false;   ///< an absent table differs from an empty one
    bool not_empty = false;  ///< an empty table is an error
    Resolved resolved = Resolved::complete;
};

struct ListRules {
    bool required = false;
    bool may_be_empty = false;                     ///< and the resolved form states an empty list
    std::size_t min_entries = 0, max_entries = 0;  ///< number of entries that the schema states; 0 = none
    const char* replaces = nullptr;                ///< as in MemberRules
};

class Visitor;
using DescribeMembers = std::function<void(Visitor&)>;

/// The description of one member that a visitor receives.
struct Member {
    const char* key;
    const char* meaning;
    MemberRules rules;
    std::function<void(const Reader&)> read;     ///< called when the member is present or required
    std::function<ordered_json()> resolve;       ///< the value in base units; null = the member is absent
    std::function<ordered_json()> json_schema;   ///< JSON Schema of the values
    std::function<ordered_json()> make_default;  ///< the default in the schema; null = none
};

struct Table {
    const char* key;
    const char* meaning;
    TableRules rules;
    DescribeMembers members;
};

struct List {
    const char* key;
    const char* meaning;
    ListRules rules;
    std::size_t entry_count;
    std::function<void(Visitor&, std::size_t)> describe_entry;  ///< describes entry i, and appends it when i == size
};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

class Visitor {
 public:
    explicit Visitor(const Capabilities& capabilities) : capabilities_(&capabilities) {}
    Visitor(const Visitor&) = delete;
    Visitor& operator=(const Visitor&) = delete;
    virtual ~Visitor() = default;

    const Capabilities& capabilities() const { return *capabilities_; }

    /// `kind` is one of value_kinds.hpp. Members that are only another form of a field have a local std::optional.
    template <class T, class Kind>
    void member(const char* key, T& field, const Kind& kind, const char* meaning, const MemberRules& rules = {}) {
        visit_member(Member{key, meaning, rules, [&](const Reader& in) { field = static_cast<T>(kind.read(in, key)); },
                            [&] { return resolve_field(field, kind, rules); }, [&] { return kind.json_schema(); },
                            [&] { return get_default(field, kind, rules); }});
    }

    void table(const char* key, const char* meaning, const DescribeMembers& members, const TableRules& rules = {}) {
        visit_table(Table{key, meaning, rules, members});
    }
    template <class T>
    void table(const char* key, T& field, const char* meaning) {
        table(key, meaning, [&field](Visitor& visitor) { describe(visitor, field); });
    }
    template <class T>
    void table(const char* key, std::optional<T>& field, const char* meaning, bool not_empty) {
        const auto resolved = field ? TableRules::Resolved::complete : TableRules::Resolved::absent;
        const auto members = [&field](Visitor& visitor) { describe(visitor, field ? *field : field.emplace()); };
        table(key, meaning, members, {.optional = true, .not_empty = not_empty, .resolved = resolved});
    }

    template <class T, class DescribeEntry>
    void list(const char* key, std::vector<T>& field, const char* meaning, const ListRules& rules,
              const DescribeEntry& describe_entry) {
        visit_list(List{key, meaning, rules, field.size(), [&](Visitor& visitor, std::size_t i) {
                            describe_entry(visitor, i < field.size() ? field[i] : field.emplace_back());
                        }});
    }
    template <class T>
    void list(const char* key, std::vector<T>& field, const char* meaning, const ListRules& rules) {
        list(key, field, meaning, rules, [](Visitor& visitor, T& entry) { describe(visitor, entry); });
    }

    /// Members of a phase that override those of the plan. The reader only knows their names, because it reads the
    /// merged tables; they have no defaults; the resolved form states them for phases that they apply to.
    virtual void overrides(bool applies, const DescribeMembers& members) = 0;

    /// Runs `rule` when a plan is read, after the members before it.
    virtual void when_reading(const std::function<void(const Reader&)>& rule) { static_cast<void>(rule); }

 protected:
    virtual void visit_member(const Member& member) = 0;
    virtual void visit_table(const Table& table) = 0;
    virtual void visit_list(const List& list) = 0;

 private:
    template <class T, class Kind>
    static ordered_json resolve_field(const T& field, const Kind& kind, const MemberRules& rules) {
        if constexpr (is_optional<T>) {
            return field ? kind.resolve(*field) : ordered_json();
        } else {
            const bool absent = !rules.resolved || (rules.absence == Absence::unset && field == T{});
            return absent ? ordered_json() : kind.resolve(field);
        }
    }
    template <class T, class Kind>
    static ordered_json get_default(const T& field, const Kind& kind, const MemberRules& rules) {
        if constexpr (is_optional<T>) {
            return {};
        } else {
            return rules.required || rules.required_by_schema || rules.absence != Absence::initial
                       ? ordered_json()
                       : kind.to_default(field);
        }
    }

    const Capabilities* capabilities_;
};

}  // namespace sonde::plan
