// SPDX-License-Identifier: Apache-2.0
// What is written: content that anybody can compute again from (seed, file, offset, generation), and the comparison
// that says which block came back wrong.
//
// A file is cut in granules of 4096 bytes. With `stamped` content, byte x of a file is
//     base[(x + rotation) mod period],   rotation = 4096 * ((mix(file) + generation * 2654435761) mod (period / 4096))
// where base is `period` pseudo-random bytes made once from the seed, except that the first 32 bytes of each granule
// are a stamp: magic ^ seed, file number, offset of the granule, generation, 8 bytes each. So every granule is unique
// (no deduplication), successive generations differ everywhere (a stale half shows), and writing costs four stores per
// granule instead of making data. The period is 256 KiB, or 1 MiB for transfers from 256 KiB: longer than the blocks
// that storage compresses.
#pragma once

#include "plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace sonde::payload {

constexpr std::uint64_t granule = 4096;
constexpr std::uint64_t magic = 0x31656d6152646e53ULL;

/// Whose bytes: the identity of a file in a run and which write of it.
struct Origin {
    std::uint64_t file = 0;        ///< number of the file (phases/layout.hpp)
    std::uint64_t generation = 0;  ///< of the phase that wrote it; 0 = never
};

struct Mismatch {
    enum class Kind {
        changed,    ///< bytes differ, the stamp is right
        displaced,  ///< another granule of the same file
        foreign,    ///< a granule of another file
        stale,      ///< an earlier generation
        torn,       ///< one granule holds parts of two generations
        zeros,      ///< never written, or lost
        truncated,  ///< the file ends before
    };
    Kind kind = Kind::changed;
    std::uint64_t offset = 0;  ///< of the first wrong byte in the file
    std::uint64_t bytes = 0;   ///< wrong bytes in the operation
    std::string text;          ///< "holds offset 8192 of the same file, generation 1"
};

/// Period of the base for a plan whose largest transfer is `transfer` bytes.
std::uint64_t period_for(std::uint64_t transfer);

/// Shared by all tasks of a process: the base content. Read only after construction.
class Base {
 public:
    Base(const plan::Payload& settings, std::uint64_t period);
    const std::byte* data() const noexcept { return bytes_.data(); }
    std::uint64_t period() const noexcept { return period_; }
    const plan::Payload& settings() const noexcept { return settings_; }
    std::uint64_t rotation(const Origin& origin) const noexcept;

 private:
    plan::Payload settings_;
    std::uint64_t period_;
    std::vector<std::byte> bytes_;
};

/// A task's place to make content: memory that holds the image of any part of a file up to `max_length` bytes.
class Image {
 public:
    /// Bytes of memory needed, and how it must be aligned (a page).
    static std::uint64_t memory_for(std::uint64_t period, std::uint64_t max_length);
    /// `memory` outlives the image; it is filled here.
    Image(const Base& base, std::byte* memory, std::uint64_t max_length);

    void set_origin(const Origin& origin) noexcept {
        origin_ = origin;
        rotation_ = base_->rotation(origin);
    }
    const Origin& origin() const noexcept { return origin_; }
    std::uint64_t seed() const noexcept { return seed_; }
    /// The newest earlier generation of this file that has `found` at `offset` (stamped content only). The bytes lie in
    /// one granule, behind its stamp; a few are too few to tell.
    std::optional<std::uint64_t> older_generation(const std::byte* found, std::uint64_t offset,
                                                  std::uint64_t length) const;

    /// The bytes of the file from `offset`, `length` of them, valid until the next call. Aligned like `offset` (mod
    /// 4096).
    std::byte* at(std::uint64_t offset, std::uint64_t length) noexcept {
        if (plain_) {
            std::byte* start = memory_ + ((offset + rotation_) & mask_);
            stamp(start - (offset & (granule - 1)), offset & ~(granule - 1), offset + length);
            return start;
        }
        return make(offset, length);
    }

 private:
    void stamp(std::byte* where, std::uint64_t from, std::uint64_t to) const noexcept {
        const std::uint64_t tag[2] = {magic ^ seed_, origin_.file};
        for (std::uint64_t g = from; g < to; g += granule, where += granule) {
            std::memcpy(where, tag, 16);
            std::memcpy(where + 16, &g, 8);
            std::memcpy(where + 24, &origin_.generation, 8);
        }
    }
    std::byte* make(std::uint64_t offset, std::uint64_t length) noexcept;

    const Base* base_;
    std::byte* memory_;
    Origin origin_;
    std::uint64_t rotation_ = 0, mask_ = 0, seed_ = 0;
    bool plain_ = true;  ///< stamped without duplicates: the fast way
};

/// Compares what a read returned with what was written. `got` bytes arrived (fewer = truncated file).
std::optional<Mismatch> compare(Image& image, const std::byte* found, std::uint64_t offset, std::uint64_t length,
                                std::uint64_t got);

const char* text(Mismatch::Kind kind);

}  // namespace sonde::payload
