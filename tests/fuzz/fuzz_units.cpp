// SPDX-License-Identifier: Apache-2.0
// Any text is either a quantity or refused; never a crash, an overflow or another exception.
#include "plan/units.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace {

template <typename Read>
void refuse_or_read(Read read) {
    try {
        read();
    } catch (const std::invalid_argument&) {
        return;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    refuse_or_read([&] { sonde::plan::format_bytes(sonde::plan::parse_bytes(text)); });
    refuse_or_read([&] {
        if (sonde::plan::parse_duration(text) < 0) {
            std::abort();
        }
    });
    refuse_or_read([&] {
        const double rate = sonde::plan::parse_rate(text);
        if (!std::isfinite(rate) || rate <= 0) {
            std::abort();
        }
    });
    return 0;
}
