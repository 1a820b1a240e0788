// SPDX-License-Identifier: Apache-2.0
// Declares the members of `data`. A new member is its field (plan.hpp) and its entry in the source; reader, resolved
// form, schema, reference page and the lab follow from the entry.
#pragma once

#include "plan/declaration.hpp"
#include "plan/plan.hpp"

namespace sonde::plan {

void describe(Visitor& visitor, Access& access);
void describe(Visitor& visitor, Io& io);
void describe(Visitor& visitor, Payload& payload);
void describe(Visitor& visitor, Paced& paced);
void describe(Visitor& visitor, Data& data);
/// Members that data, meta and phases have.
void describe_backend(Visitor& visitor, Data& data);
void describe_verify(Visitor& visitor, Data& data);
void describe_suffix(Visitor& visitor, Files& files);

}  // namespace sonde::plan
