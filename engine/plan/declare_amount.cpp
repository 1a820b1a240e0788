// SPDX-License-Identifier: Apache-2.0
#include "plan/declare_amount.hpp"

#include "plan/table_reader.hpp"
#include "plan/table_writer.hpp"
#include "plan/value_kinds.hpp"

namespace sonde::plan {

void describe(Visitor& visitor, Amount& amount) {
    const bool in_bytes = amount.of == Amount::Basis::bytes;
    visitor.member("of", amount.of, choice(choices::amount_bases), "unit of the amount", required_by_schema);
    visitor.member("bytes", amount.bytes, BytesKind{}, "of bytes: how many",
                   {.absence = Absence::unset, .resolved = in_bytes});
    visitor.member("x", amount.factor, NumberKind{0.0, 1e6}, "factor, of node_memory", {.resolved = !in_bytes});
    visitor.member("per", amount.per, choice(choices::amount_granularities),
                   "scope of the amount, which is divided evenly among its tasks");
    visitor.when_reading([&amount](const Reader& in) {
        if (amount.of == Amount::Basis::bytes && !in.has("bytes")) {
            in.fail("bytes", "is missing: say how many, or use of = \"node_memory\"");
        }
    });
}

Amount AmountKind::read(const Reader& in, const char* key) {
    Amount amount;
    if (in.value(key).is_object()) {
        read_table(in.object(key), amount);
    } else {
        amount.bytes = in.bytes(key, amount.bytes);
    }
    return amount;
}

ordered_json AmountKind::resolve(const Amount& amount) {
    if (amount.of == Amount::Basis::bytes && amount.per == Amount::Granularity::task) {
        return amount.bytes;
    }
    return resolve_members([table = amount](Visitor& visitor) mutable { describe(visitor, table); });
}

}  // namespace sonde::plan
