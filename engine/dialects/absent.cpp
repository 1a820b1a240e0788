// SPDX-License-Identifier: Apache-2.0
// Replaces all dialects where SONDE_DIALECTS is OFF: each refuses its command line and says how to add it.
#include "dialects/dialect.hpp"
#include "plan/plan_error.hpp"

namespace sonde::dialects {
namespace {

std::unique_ptr<Session> refuse(const std::vector<std::string>& /*arguments*/) {
    throw plan::PlanError("this engine was built without command lines of other tools: `make build` adds them");
}

constexpr std::string_view summary = "not in this build: `make build` adds it";

}  // namespace

extern const Dialect ior_dialect;
const Dialect ior_dialect{.name = "ior", .summary = summary, .make_session = refuse};
extern const Dialect mdtest_dialect;
const Dialect mdtest_dialect{.name = "mdtest", .summary = summary, .make_session = refuse};
extern const Dialect md_workbench_dialect;
const Dialect md_workbench_dialect{.name = "md-workbench", .summary = summary, .make_session = refuse};

}  // namespace sonde::dialects
