// SPDX-License-Identifier: Apache-2.0
#include "treatments/kind.hpp"

#include <utility>

namespace sonde::treatments {

TreatmentResult said(TreatmentResult::Outcome outcome, std::string text) {
    TreatmentResult result;
    result.outcome = outcome;
    result.text = std::move(text);
    return result;
}

}  // namespace sonde::treatments
