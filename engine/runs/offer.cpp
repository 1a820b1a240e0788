// SPDX-License-Identifier: Apache-2.0
#include "runs/offer.hpp"

#include "backends/backend.hpp"
#include "treatments/treatments.hpp"

namespace sonde::runs {

const plan::Offer& offer() {
    static const plan::Offer all = [] {
        plan::Offer gathered;
        for (const backends::Backend* backend : backends::list()) {
            gathered.backends.push_back({backend->name, backend->traits});
        }
        for (const treatments::Kind* kind : treatments::list()) {
            gathered.treatments.push_back(kind->rule);
        }
        return gathered;
    }();
    return all;
}

}  // namespace sonde::runs
