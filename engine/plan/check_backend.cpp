// SPDX-License-Identifier: Apache-2.0
#include "plan/check_backend.hpp"

#include "plan/parse.hpp"

#include <string>

namespace sonde::plan {

void check_backend(const Phase& phase, const Offer& offer) {
    const std::string& at = phase.data_at;
    const std::string& name = phase.data.backend;
    const BackendRule* backend = offer.backend(name);
    if (backend == nullptr) {
        std::string names;
        for (const BackendRule& rule : offer.backends) {
            names += (names.empty() ? "" : ", ") + std::string(rule.name);
        }
        refuse(at + ".backend", "is \"" + name + "\", but there are only " + names);
    }
    const Traits& can = backend->traits;
    const Io& io = phase.data.io;
    const auto others = [&offer](bool Traits::*trait) { return offer.backends_with(trait); };
    if (io.queue_depth > 1 && !can.queue) {
        refuse(at + ".io.queue_depth", "is " + std::to_string(io.queue_depth) + ", but backend \"" + name +
                                           "\" does one operation at a time: use backend = \"" +
                                           others(&Traits::queue) + "\", or more tasks");
    }
    if (io.direct && !can.direct) {
        refuse(at + ".io.direct", "does not go with backend \"" + name + "\": use " + others(&Traits::direct));
    }
    if (io.sync != Sync::none && !can.sync) {
        refuse(at + ".io.sync", "does not go with backend \"" + name + "\": use io.fsync, or " + others(&Traits::sync));
    }
    if (io.collective && !can.collective) {
        refuse(at + ".io.collective", "does not go with backend \"" + name + "\"");
    }
    if (io.collective && io.queue_depth > 1) {
        refuse(at + ".io.collective", "needs queue_depth = 1");
    }
    if (phase.meta && !can.names) {
        refuse(at + ".backend", "\"" + name + "\" has no operations on names: use " + others(&Traits::names));
    }
    if (phase.op == Op::walk && !can.stores_data) {
        refuse(at + ".op", "= \"walk\" finds what is there, but backend \"" + name + "\" keeps nothing: use " +
                               others(&Traits::names));
    }
    if (phase.data.verify != Verify::none && !can.stores_data) {
        refuse(at + ".verify", "is impossible: backend \"" + name + "\" keeps no data");
    }
}

}  // namespace sonde::plan
