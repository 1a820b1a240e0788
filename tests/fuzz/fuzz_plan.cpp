// SPDX-License-Identifier: Apache-2.0
// Any text is either a plan or refused with one sentence. Anything else that comes out of the parser is a bug.
#include "plan/parse.hpp"
#include "runs/capabilities.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const sonde::plan::Plan plan =
            sonde::plan::parse_plan({reinterpret_cast<const char*>(data), size}, sonde::runs::list_capabilities());
        // An accepted plan satisfies all conditions that the engine does not check again.
        for (const sonde::plan::Phase& phase : plan.phases) {
            const sonde::plan::Access& access = phase.data.access;
            if (access.transfer == 0 || access.block % access.transfer != 0 || phase.id.empty()) {
                std::abort();
            }
        }
    } catch (const sonde::plan::PlanError& error) {
        const std::string_view sentence = error.what();
        if (sentence.empty() || sentence.find('\n') != std::string_view::npos) {
            std::abort();
        }
    }
    return 0;
}
