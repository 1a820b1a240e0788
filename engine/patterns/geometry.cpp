// SPDX-License-Identifier: Apache-2.0
#include "patterns/geometry.hpp"

#include <algorithm>
#include <cmath>

namespace sonde::patterns {

using plan::AccessOrder;
using plan::PermutationScope;

Geometry::Geometry(const plan::Access& access, std::uint64_t segments, FileShare share, std::uint64_t pass_key)
    : order_(access.order),
      scope_(access.scope),
      transfer_(access.transfer),
      block_pitch_(access.block + access.gap),
      offset_(access.offset),
      stride_(access.stride),
      slots_per_block_(access.block / access.transfer),
      segments_(segments),
      operations_(segments * (access.block / access.transfer)),
      slots_within_(access.within.value_or(0) / access.transfer),
      share_(share),
      key_(mix64(access.seed) ^ mix64(pass_key + 0x5eed)),
      size_steps_(accumulate_sizes(access)) {
    if (scope_ != PermutationScope::file) {
        key_ ^= mix64(share.index + 1);
    }
    if (access.distribution && access.distribution->kind != plan::DistributionKind::uniform) {
        skewed_draw_ = std::make_shared<const SkewedDraw>(*access.distribution, slots_in_range(), key_);
    }
}

std::shared_ptr<const std::vector<Geometry::SizeStep>> Geometry::accumulate_sizes(const plan::Access& access) {
    if (access.sizes.empty()) {
        return nullptr;
    }
    std::vector<SizeStep> steps;
    double percent = 0;
    for (const plan::TransferSize& entry : access.sizes) {
        percent += entry.percent;
        steps.push_back({static_cast<std::uint32_t>(entry.size), static_cast<std::uint64_t>(percent / 100 * 0x1p53)});
    }
    steps.back().cumulative_share = 1ULL << 53U;
    return std::make_shared<const std::vector<SizeStep>>(std::move(steps));
}

std::uint64_t Geometry::end_of_file() const noexcept {
    if (order_ == AccessOrder::stride) {
        return offset_ + (operations_ * share_.sharers - 1) * stride_ + transfer_;
    }
    if (slots_within_ > 0) {
        return offset_ + slots_within_ * transfer_;
    }
    const std::uint64_t blocks = segments_ * share_.sharers;
    return offset_ + (blocks - 1) * block_pitch_ + slots_per_block_ * transfer_;
}

std::uint64_t Geometry::slot_offset(std::uint64_t slot, std::uint64_t index) const noexcept {
    if (segments_ == 1) {
        return offset_ + index * block_pitch_ +
               slot * transfer_;  // spares the division, which costs more than the rest
    }
    const std::uint64_t segment = slot / slots_per_block_;
    const std::uint64_t in_block = slot % slots_per_block_;
    return offset_ + (segment * share_.sharers + index) * block_pitch_ + in_block * transfer_;
}

/// Number of slots that a random order covers.
std::uint64_t Geometry::slots_in_range() const noexcept {
    if (slots_within_ > 0) {
        return slots_within_;
    }
    return scope_ == PermutationScope::block  ? slots_per_block_
           : scope_ == PermutationScope::task ? operations_
                                              : operations_ * share_.sharers;
}

Permutation Geometry::make_permutation(std::uint64_t pass) const {
    return {slots_in_range(), key_ + pass * 0x9e3779b97f4a7c15ULL};
}

std::uint64_t Geometry::draw_slot(std::uint64_t bits) const noexcept {
    return skewed_draw_ ? (*skewed_draw_)(bits) : scale_to_range(bits, slots_in_range());
}

std::uint64_t Geometry::random_offset(std::uint64_t i, std::uint64_t pass) const noexcept {
    const std::uint64_t bits = mix64(mix64(key_ + pass) ^ (i + share_.index * 0xd1342543de82ef95ULL));
    const std::uint64_t slot = draw_slot(bits);
    if (slots_within_ > 0) {
        return offset_ + slot * transfer_;
    }
    if (scope_ == PermutationScope::block) {
        return slot_offset(i / slots_per_block_ * slots_per_block_ + slot, share_.index);
    }
    if (scope_ == PermutationScope::task) {
        return slot_offset(slot, share_.index);
    }
    return slot_offset(slot / share_.sharers, slot % share_.sharers);
}

std::uint64_t Geometry::offset_of(std::uint64_t i, std::uint64_t pass) const noexcept {
    std::uint64_t offset = 0;
    fill_offsets(i, pass, {&offset, 1});
    return offset;
}

/// Counts instead of dividing, because this runs in the timed loop.
void Geometry::fill_sequential(std::uint64_t first, std::span<std::uint64_t> out) const noexcept {
    std::uint64_t remaining = slots_per_block_ - first % slots_per_block_;
    std::uint64_t offset = slot_offset(first, share_.index);
    const std::uint64_t jump = share_.sharers * block_pitch_ - slots_per_block_ * transfer_;
    const std::uint64_t step = transfer_;
    for (std::size_t k = 0; k < out.size();) {
        const std::size_t end = k + std::min<std::uint64_t>(remaining, out.size() - k);
#pragma GCC unroll 4
        for (; k < end; ++k) {
            out[k] = offset;
            offset += step;
        }
        remaining = slots_per_block_;
        offset += jump;
    }
}

void Geometry::fill_offsets(std::uint64_t first, std::uint64_t pass, std::span<std::uint64_t> out) const noexcept {
    switch (order_) {
        case AccessOrder::sequential:
            fill_sequential(first, out);
            return;
        case AccessOrder::reverse:
            for (std::size_t k = 0; k < out.size(); ++k) {
                out[k] = slot_offset(operations_ - 1 - (first + k), share_.index);
            }
            return;
        case AccessOrder::stride:
            for (std::size_t k = 0; k < out.size(); ++k) {
                out[k] = offset_ + ((first + k) * share_.sharers + share_.index) * stride_;
            }
            return;
        case AccessOrder::random_replace:
            for (std::size_t k = 0; k < out.size(); ++k) {
                out[k] = random_offset(first + k, pass);
            }
            return;
        case AccessOrder::random_permute:
            fill_permuted(first, pass, out);
            return;
    }
}

void Geometry::fill_offsets(std::uint64_t first, std::uint64_t pass, std::span<std::uint64_t> out,
                            std::span<std::uint32_t> lengths) const noexcept {
    fill_offsets(first, pass, out);
    if (size_steps_ == nullptr) {
        std::fill(lengths.begin(), lengths.end(), static_cast<std::uint32_t>(transfer_));
        return;
    }
    const std::uint64_t key = mix64(key_ + pass + 0x73697a65ULL) + share_.index * 0xd1342543de82ef95ULL;
    for (std::size_t k = 0; k < out.size(); ++k) {
        const std::uint64_t bits = mix64(key ^ (first + k));
        const SizeStep* step = size_steps_->data();
        while ((bits >> 11U) >= step->cumulative_share) {
            ++step;
        }
        lengths[k] = step->length;
        out[k] += scale_to_range(mix64(bits), transfer_ / step->length) * step->length;
    }
}

void Geometry::fill_permuted(std::uint64_t first, std::uint64_t pass, std::span<std::uint64_t> out) const noexcept {
    const Permutation permute = make_permutation(pass);
    if (scope_ == PermutationScope::block) {
        // The same order in every segment, as IOR's -z has it.
        for (std::size_t k = 0; k < out.size();) {
            const std::uint64_t in_block = (first + k) % slots_per_block_;
            const std::size_t part = std::min<std::uint64_t>(out.size() - k, slots_per_block_ - in_block);
            const std::uint64_t base = slot_offset(first + k - in_block, share_.index);
            permute.fill(in_block, out.subspan(k, part));
            for (std::uint64_t& slot : out.subspan(k, part)) {
                slot = base + slot * transfer_;
            }
            k += part;
        }
        return;
    }
    const bool shared = scope_ == PermutationScope::file && share_.sharers > 1;
    permute.fill(shared ? share_.index * operations_ + first : first, out);
    if (segments_ == 1 && !shared) {
        const std::uint64_t base = slot_offset(0, share_.index), step = transfer_;
#pragma GCC unroll 4
        for (std::uint64_t& slot : out) {
            slot = base + slot * step;
        }
        return;
    }
    for (std::uint64_t& slot : out) {
        slot = shared ? slot_offset(slot / share_.sharers, slot % share_.sharers) : slot_offset(slot, share_.index);
    }
}

std::uint64_t count_segments(std::uint64_t volume, std::uint64_t block) {
    return std::max<std::uint64_t>(1, volume / block + (volume % block != 0 ? 1 : 0));
}

std::uint64_t volume_of_task(const plan::Amount& amount, std::uint64_t tasks, std::uint64_t tasks_per_node,
                             std::uint64_t node_memory) {
    const std::uint64_t bytes =
        amount.of == plan::Amount::Basis::bytes
            ? amount.bytes
            // At most more than any file holds: beyond it, a conversion to an integer would be undefined.
            : static_cast<std::uint64_t>(std::ceil(std::min(amount.factor * static_cast<double>(node_memory), 0x1p63)));
    const std::uint64_t parts = amount.per == plan::Amount::Granularity::task   ? 1
                                : amount.per == plan::Amount::Granularity::node ? tasks_per_node
                                                                                : tasks;
    return bytes / parts + (bytes % parts != 0 ? 1 : 0);
}

}  // namespace sonde::patterns
