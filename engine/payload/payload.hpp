// SPDX-License-Identifier: Apache-2.0
// Content of files, which is a function of (seed, file, offset, generation), so it can be computed again. compare.hpp
// says which block came back wrong.
//
// A file is cut in granules of 4096 bytes. With `stamped` content, byte x of a file is
//     base[(x + rotation) mod period],   rotation = 4096 * ((mix(file) + generation * 2654435761) mod (period / 4096))
// where base is `period` pseudo-random bytes made once from the seed, except that 32 bytes of each granule are a stamp:
// magic ^ seed, file number, offset of the granule, generation, 8 bytes each. It begins at byte
//     64 * (((offset + rotation) / 4096) mod 64)
// of the granule (mod period / 4096, if that is less than 64): always at the head, the stamps of a large transfer would
// fall into one set of the processor's cache and cost 2 % of a 1 MiB write. So every granule is unique (no
// deduplication), successive generations differ everywhere (a stale half shows), and writing costs four stores per
// granule instead of making data. The period is 256 KiB, or 1 MiB for transfers from 256 KiB: longer than the blocks
// that storage compresses. `random` content has its stamps at the heads of the granules.
#pragma once

#include "plan/plan.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace sonde::payload {

constexpr std::uint64_t granule_bytes = 4096;
constexpr std::uint64_t stamp_magic = 0x31656d6152646e53ULL;
constexpr std::uint64_t stamp_bytes = 32;

/// Places that stamps of a base of `period` bytes have: stamp_begin_in_granule() of any place, as a mask.
constexpr std::uint64_t stamp_begin_mask(std::uint64_t period) noexcept {
    return ((period < 64 * granule_bytes ? period / granule_bytes : 64) - 1) * 64;
}
/// Offset of the stamp in the granule at this position of the base: 0 to 4032.
constexpr std::uint64_t stamp_begin_in_granule(std::uint64_t position, std::uint64_t places) noexcept {
    return position / granule_bytes * 64 & places;
}

/// Origin of bytes: the number of a file in a run, and which write of it.
struct Origin {
    std::uint64_t file = 0;        ///< number of the file (files/file_map.hpp)
    std::uint64_t generation = 0;  ///< of the phase that wrote it; 0 = never
    std::uint32_t writer = 0;      ///< task that wrote it: part of IOR's content, of no other
    bool operator==(const Origin&) const = default;
};

/// Period of the base for a plan whose largest transfer is `transfer` bytes; what the plan says itself counts.
std::uint64_t choose_payload_period(const plan::Payload& settings, std::uint64_t transfer);

/// Shared by all tasks of a process: the base content, which takes memory from when somebody needs it on.
class PayloadBase {
 public:
    PayloadBase(const plan::Payload& settings, std::uint64_t period) : settings_(settings), period_(period) {}
    const std::byte* data() const;
    /// The content into a task's own memory, `period` bytes of it. The first task's is made there, so that a process
    /// with one task has no copy; whoever comes next copies what data() has made once for all.
    void copy_to(std::byte* memory) const;
    std::uint64_t period() const noexcept { return period_; }
    const plan::Payload& settings() const noexcept { return settings_; }
    std::uint64_t rotation(const Origin& origin) const noexcept;
    /// Offset of the stamp in the granule at `offset` of a file: 0 to 4032.
    std::uint64_t stamp_begin(std::uint64_t offset, const Origin& origin) const noexcept;
    /// The content of `stamped` files, made afresh: for looking at what is wrong, not for writing.
    std::vector<std::byte> make_stamped_content(std::uint64_t offset, std::uint64_t length, const Origin& origin) const;
    /// Bytes that it takes now: one period, or none.
    std::uint64_t memory_bytes() const noexcept { return bytes_.size(); }

 private:
    void generate(std::byte* memory) const;

    plan::Payload settings_;
    std::uint64_t period_;
    mutable std::once_flag generated_once_;
    mutable std::atomic<bool> is_requested_ = false;
    mutable std::vector<std::byte> bytes_;
};

/// A task's place to make content: memory that holds the image of any part of a file up to `max_length` bytes.
class PayloadImage {
 public:
    /// The part of the base content that a task stores itself. With the complete period an operation only writes its
    /// stamps into it; with room for one transfer the engine copies the content first.
    enum class BaseStorage { whole_period, one_transfer };
    /// The whole period as long as all images of the node take no more than 64 MiB: a write then costs no copy. Beyond
    /// that, transfers up to 64 KiB are copied from the base, which the tasks of a process share.
    static BaseStorage choose_base_storage(std::uint64_t period, std::uint64_t max_length,
                                           std::uint64_t images_on_node);
    /// Bytes of memory needed, and how it must be aligned (a page).
    static std::uint64_t memory_for(std::uint64_t period, std::uint64_t max_length,
                                    BaseStorage holds = BaseStorage::whole_period);
    /// `memory` outlives the image; it is filled here.
    PayloadImage(const PayloadBase& base, std::byte* memory, std::uint64_t max_length,
                 BaseStorage holds = BaseStorage::whole_period);

    void set_origin(const Origin& origin) noexcept {
        has_stamps_ = has_stamps_ && origin == origin_;
        origin_ = origin;
        rotation_ = base_->rotation(origin);
    }
    const Origin& origin() const noexcept { return origin_; }
    const PayloadBase& base() const noexcept { return *base_; }

    /// The bytes of the file from `offset`, `length` of them, valid until the next call. Aligned like `offset` (mod
    /// 4096).
    std::byte* content_at(std::uint64_t offset, std::uint64_t length) noexcept {
        return is_stamped_only_ ? stamp_writer<false>().buffer_at(offset, length) : make_content(offset, length);
    }

    /// buffer_at() of stamped content without duplicates, as a value: a hot loop that keeps it in a local variable need
    /// not load its members again after each call to storage. `marked`: stamp_all_granules() has put all of a stamp but
    /// the offset into each granule, so one store is left. Valid until the next set_origin().
    template <bool marked>
    class StampWriter {
     public:
        std::byte* buffer_at(std::uint64_t offset, std::uint64_t length) const noexcept {
            const std::uint64_t inside = offset & (granule_bytes - 1);
            const std::uint64_t position = (offset + rotation_) & mask_;  // the rotation is whole granules
            stamp(position - inside, offset - inside);
            for (std::uint64_t more = granule_bytes; more < inside + length; more += granule_bytes) {
                stamp(position - inside + more, offset - inside + more);
            }
            return memory_ + position;
        }

     private:
        friend class PayloadImage;
        StampWriter(std::byte* memory, std::uint64_t mask, std::uint64_t rotation, std::uint64_t tag,
                    const Origin& origin)
            : memory_(memory),
              mask_(mask),
              places_(stamp_begin_mask(mask + 1)),
              rotation_(rotation),
              tag_{tag, origin.file},
              generation_(origin.generation) {}
        /// `position` of the granule in memory, which is its place in the base, some periods on.
        void stamp(std::uint64_t position, std::uint64_t granule_at) const noexcept {
            std::byte* where = memory_ + position + stamp_begin_in_granule(position, places_);
            if constexpr (marked) {
                std::memcpy(where + sizeof tag_, &granule_at, sizeof granule_at);
            } else {
                const std::uint64_t tail[2] = {granule_at, generation_};
                std::memcpy(where, tag_, sizeof tag_);
                std::memcpy(where + sizeof tag_, tail, sizeof tail);
            }
        }
        std::byte* memory_;
        std::uint64_t mask_, places_, rotation_;
        std::uint64_t tag_[2];
        std::uint64_t generation_;
    };
    /// Whether stamp_writer() makes the right content.
    bool is_stamped_only() const noexcept { return is_stamped_only_; }
    /// With `marked` after stamp_all_granules() only.
    template <bool marked>
    StampWriter<marked> stamp_writer() const noexcept {
        return {memory_, mask_, rotation_, stamp_magic ^ seed_, origin_};
    }
    /// Plain content: gets ready for pen<true>(), unless that costs more than it spares `bytes` that are still to be
    /// written: then false.
    bool stamp_all_granules(std::uint64_t bytes) noexcept;

 private:
    std::byte* make_content(std::uint64_t offset, std::uint64_t length) noexcept;
    std::byte* make_packet(std::uint64_t offset, std::uint64_t length) noexcept;
    std::byte* copy(std::uint64_t position, std::uint64_t bytes) noexcept;

    const PayloadBase* base_;
    const std::byte* shared_ = nullptr;  ///< the base, where transfers are copied from it
    std::byte* memory_;
    BaseStorage base_storage_;
    Origin origin_;
    std::uint64_t rotation_ = 0, mask_ = 0, seed_ = 0, size_ = 0;
    bool is_stamped_only_ = true;      ///< stamped without duplicates: the fast way
    bool has_stamps_ = false;          ///< all granules have the stamp of the origin, but for the offset
    std::uint64_t packet_of_ = ~0ULL;  ///< IOR's data: the writer whose packet lies in `memory_`
};

}  // namespace sonde::payload
