// SPDX-License-Identifier: Apache-2.0
// Which bytes of a file one task touches, and in which order.
//
// A file is shared by `sharers` tasks (1 for a file per task); the task is number `index` among them. With block B,
// gap G, transfer T, m = B / T slots a block and S segments, slot (g, j) of the task starts at
//     offset + g * sharers * (B + G) + index * (B + G) + j * T          (sequential, reverse, random)
//     offset + (k * sharers + index) * stride,  k = g * m + j            (stride)
// which is IOR's geometry with offset = gap = 0. Random drawing `within` W bytes: offset + k * T, k < W / T. One pass
// of a task is S * m operations. With sizes, an operation of z bytes lies at q * z in its slot, q < T / z.
#pragma once

#include "patterns/permutation.hpp"
#include "patterns/skewed_draw.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sonde::patterns {

/// The part a task has in one file.
struct FileShare {
    std::uint64_t sharers = 1;
    std::uint64_t index = 0;
};

class Geometry {
 public:
    /// `segments` is already resolved (from access.segments or a volume). `pass_key` distinguishes files, so that the
    /// permutations of two files differ; with scope `file` it must be the same for all sharers.
    Geometry(const plan::Access& access, std::uint64_t segments, FileShare share, std::uint64_t pass_key);

    std::uint64_t operation_count() const noexcept { return operations_; }  ///< of one pass
    std::uint64_t transfer_bytes() const noexcept { return transfer_; }
    /// Without a stride, the task's bytes lie in blocks: the first at first_block_offset(), bytes_per_block() bytes
    /// each, one every block_distance() bytes.
    std::uint64_t first_block_offset() const noexcept { return offset_ + share_.index * block_pitch_; }
    std::uint64_t bytes_per_block() const noexcept { return slots_per_block_ * transfer_; }
    std::uint64_t block_distance() const noexcept { return share_.sharers * block_pitch_; }
    /// One past the last byte that any sharer touches.
    std::uint64_t end_of_file() const noexcept;

    /// Offset of operation `i` of pass `pass` (random orders differ from pass to pass).
    std::uint64_t offset_of(std::uint64_t i, std::uint64_t pass = 0) const noexcept;
    /// Offsets of operations `first` … first + out.size() - 1 of one pass; the same as offset_of, faster.
    void fill_offsets(std::uint64_t first, std::uint64_t pass, std::span<std::uint64_t> out) const noexcept;
    /// The same with the bytes of each operation. Without access.sizes these are transfer_bytes().
    void fill_offsets(std::uint64_t first, std::uint64_t pass, std::span<std::uint64_t> out,
                      std::span<std::uint32_t> lengths) const noexcept;
    bool has_sizes() const noexcept { return size_steps_ != nullptr; }

 private:
    /// A size and the sum of the shares up to it, of 2^53.
    struct SizeStep {
        std::uint32_t length;
        std::uint64_t cumulative_share;
    };
    static std::shared_ptr<const std::vector<SizeStep>> accumulate_sizes(const plan::Access& access);
    std::uint64_t slot_offset(std::uint64_t slot, std::uint64_t index) const noexcept;
    void fill_sequential(std::uint64_t first, std::span<std::uint64_t> out) const noexcept;
    void fill_permuted(std::uint64_t first, std::uint64_t pass, std::span<std::uint64_t> out) const noexcept;
    std::uint64_t random_offset(std::uint64_t i, std::uint64_t pass) const noexcept;
    Permutation make_permutation(std::uint64_t pass) const;
    std::uint64_t slots_in_range() const noexcept;
    std::uint64_t draw_slot(std::uint64_t bits) const noexcept;

    plan::AccessOrder order_;
    plan::PermutationScope scope_;
    std::uint64_t transfer_, block_pitch_, offset_, stride_;  ///< pitch = block + gap
    std::uint64_t slots_per_block_, segments_, operations_;
    std::uint64_t
        slots_within_;  ///< that may be drawn, one beside the other from the offset on; 0: those of the blocks
    FileShare share_;
    std::uint64_t key_;
    std::shared_ptr<const std::vector<SizeStep>> size_steps_;  ///< null: each operation has transfer bytes
    std::shared_ptr<const SkewedDraw> skewed_draw_;            ///< null: each slot is drawn equally often
};

/// Segments that carry `volume` bytes of one task: ceil(volume / block), at least 1.
std::uint64_t count_segments(std::uint64_t volume_of_task, std::uint64_t block);

/// Resolves the amount a plan asks for to bytes of one task. `node_memory` in bytes.
std::uint64_t volume_of_task(const plan::Amount& amount, std::uint64_t tasks, std::uint64_t tasks_per_node,
                             std::uint64_t node_memory);

}  // namespace sonde::patterns
