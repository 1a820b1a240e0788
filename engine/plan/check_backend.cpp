// SPDX-License-Identifier: Apache-2.0
#include "plan/check_backend.hpp"

#include "plan/plan_error.hpp"

#include <string>

namespace sonde::plan {

void check_backend(const Phase& phase, const Capabilities& capabilities) {
    const std::string& where = phase.data_at;
    const std::string& name = phase.data.backend;
    const BackendCapability* backend = capabilities.backend(name);
    if (backend == nullptr) {
        std::string names;
        for (const BackendCapability& rule : capabilities.backends) {
            names += (names.empty() ? "" : ", ") + std::string(rule.name);
        }
        refuse(where + ".backend", "is \"" + name + "\", but there are only " + names);
    }
    const BackendTraits& can = backend->traits;
    const Io& io = phase.data.io;
    const auto others = [&capabilities](bool BackendTraits::*trait) { return capabilities.list_backends_with(trait); };
    if (io.queue_depth > 1 && !can.queue) {
        refuse(where + ".io.queue_depth", "is " + std::to_string(io.queue_depth) + ", but backend \"" + name +
                                              "\" does one operation at a time: use backend = \"" +
                                              others(&BackendTraits::queue) + "\", or more tasks");
    }
    if (io.direct && !can.direct) {
        refuse(where + ".io.direct",
               "does not go with backend \"" + name + "\": use " + others(&BackendTraits::direct));
    }
    if (io.sync != Sync::none && !can.sync) {
        refuse(where + ".io.sync",
               "does not go with backend \"" + name + "\": use io.fsync, or " + others(&BackendTraits::sync));
    }
    if (io.collective && !can.collective) {
        refuse(where + ".io.collective", "does not go with backend \"" + name + "\"");
    }
    if (io.collective && io.queue_depth > 1) {
        refuse(where + ".io.collective", "needs queue_depth = 1");
    }
    if (phase.meta && !can.names) {
        refuse(where + ".backend", "\"" + name + "\" has no operations on names: use " + others(&BackendTraits::names));
    }
    if (phase.op == Op::walk && !can.stores_data) {
        refuse(where + ".op", "= \"walk\" finds what is there, but backend \"" + name + "\" keeps nothing: use " +
                                  others(&BackendTraits::names));
    }
    if (phase.data.verify != Verify::none && !can.stores_data) {
        refuse(where + ".verify", "is impossible: backend \"" + name + "\" keeps no data");
    }
}

}  // namespace sonde::plan
