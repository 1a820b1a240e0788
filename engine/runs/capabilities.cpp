// SPDX-License-Identifier: Apache-2.0
#include "runs/capabilities.hpp"

#include "backends/backend.hpp"
#include "treatments/treatments.hpp"

namespace sonde::runs {

const plan::Capabilities& list_capabilities() {
    static const plan::Capabilities result = [] {
        plan::Capabilities gathered;
        for (const backends::Backend* backend : backends::list_backends()) {
            gathered.backends.push_back({backend->name, backend->traits});
        }
        for (const treatments::TreatmentKind* kind : treatments::list_treatments()) {
            gathered.treatments.push_back(kind->capability);
        }
        return gathered;
    }();
    return result;
}

}  // namespace sonde::runs
