// SPDX-License-Identifier: Apache-2.0
#include "treatments/treatment_kind.hpp"

#include <utility>

namespace sonde::treatments {

TreatmentResult make_result(TreatmentResult::Status outcome, std::string text) {
    TreatmentResult result;
    result.outcome = outcome;
    result.text = std::move(text);
    return result;
}

}  // namespace sonde::treatments
