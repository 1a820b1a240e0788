// SPDX-License-Identifier: Apache-2.0
#include "system/critical.hpp"

namespace sonde::system {

constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));
namespace {
void do_nothing() {
}
}  // namespace

void (*deliver_signals)() = do_nothing;

}  // namespace sonde::system
