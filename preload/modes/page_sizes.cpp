// SPDX-License-Identifier: Apache-2.0
#include "modes/page_sizes.hpp"

#include "cache/pages.hpp"
#include "cache/profitability.hpp"
#include "modes/modes.hpp"

namespace sonde::buffer {

namespace {

constexpr std::uint32_t piece_in_memory = 128U << 10U;
constexpr std::uint32_t piece_of_slow_storage = 1U << 20U;

void set_pages(Held& held, const settings::Rule& rule, std::uint32_t piece) noexcept {
    const std::uint32_t pieces = rule.size / piece;  // 1 GiB of 128 KiB at most, in 65536 buffers
    held.page_size = pieces > 1 ? piece : rule.size;
    held.limit = pieces > 1 ? rule.count * pieces : rule.count;
    held.prefetch = pieces > 1 ? rule.prefetch * pieces : rule.prefetch;
}

}  // namespace

void divide_pages(File& file) noexcept {
    const settings::Rule& rule = *file.rule;
    if (rule.direct || rule.always || rule.automatic || rule.size <= piece_in_memory) {
        return;  // what goes around the kernel's cache is as large as it was asked for
    }
    file.held.divided = file.held.small = true;
    set_pages(file.held, rule, piece_in_memory);
}

void fit_pages(File& file) noexcept {
    const bool written = file.ends.writer >= 0;
    if (!file.held.divided || !(written || (file.held.small && is_slow(file)))) [[likely]] {
        return;
    }
    close_gate(file);
    if (file.held.divided && file.mode.load(std::memory_order_relaxed) == Mode::Active && file.dirty.first == nullptr) {
        drop_all(file);
        file.held.small = false;
        file.held.divided = !written;
        set_pages(file.held, *file.rule, written ? file.rule->size : piece_of_slow_storage);
    }
    open_gate(file);
}

}  // namespace sonde::buffer
