// SPDX-License-Identifier: Apache-2.0
#include "payload/payload.hpp"

#include "patterns/permutation.hpp"
#include "payload/ior_pattern.hpp"

#include <algorithm>
#include <cmath>

namespace sonde::payload {

using patterns::mix64;

namespace {

constexpr std::uint64_t cell = 64;  // grain of the compressibility dial: far below any compressor's window

/// Random bytes with `zeros` of every 64 cleared, spread so that no compressor sees one compressible end.
void fill(std::byte* out, std::uint64_t bytes, std::uint64_t key, double compressible) {
    const auto zeros = static_cast<std::uint64_t>(std::lround(compressible * static_cast<double>(cell)));
    for (std::uint64_t i = 0; i < bytes; i += 8) {
        const std::uint64_t word = mix64(key + i);
        std::memcpy(out + i, &word, std::min<std::uint64_t>(8, bytes - i));
    }
    for (std::uint64_t start = 0; zeros > 0 && start < bytes; start += cell) {
        const std::uint64_t count = std::min(zeros, bytes - start);
        std::memset(out + start, 0, count);
    }
}

}  // namespace

std::uint64_t choose_payload_period(const plan::Payload& settings, std::uint64_t transfer) {
    return settings.period > 0 ? settings.period : transfer < (256U << 10U) ? 256U << 10U : 1U << 20U;
}

void PayloadBase::generate(std::byte* memory) const {
    if (settings_.kind == plan::PayloadKind::zero) {
        std::memset(memory, 0, period_);
    } else {
        fill(memory, period_, mix64(settings_.seed), settings_.compressible);
    }
}

const std::byte* PayloadBase::data() const {
    std::call_once(generated_once_, [this] {
        bytes_.resize(period_);
        generate(bytes_.data());
    });
    return bytes_.data();
}

void PayloadBase::copy_to(std::byte* memory) const {
    if (!is_requested_.exchange(true)) {
        generate(memory);
    } else {
        std::memcpy(memory, data(), period_);
    }
}

std::uint64_t PayloadBase::rotation(const Origin& origin) const noexcept {
    const std::uint64_t places = period_ / granule_bytes;
    return granule_bytes * ((mix64(origin.file) + origin.generation * 2654435761ULL) % places);
}

std::uint64_t PayloadBase::stamp_begin(std::uint64_t offset, const Origin& origin) const noexcept {
    return settings_.kind == plan::PayloadKind::stamped
               ? stamp_begin_in_granule(offset + rotation(origin), stamp_begin_mask(period_))
               : 0;
}

std::vector<std::byte> PayloadBase::make_stamped_content(std::uint64_t offset, std::uint64_t length,
                                                         const Origin& origin) const {
    const std::uint64_t first = offset & ~(granule_bytes - 1);
    const std::uint64_t last = (offset + length + granule_bytes - 1) & ~(granule_bytes - 1);
    std::vector<std::byte> bytes(last - first);
    const std::byte* const base = data();
    for (std::uint64_t granule_begin = first; granule_begin < last; granule_begin += granule_bytes) {
        std::byte* where = bytes.data() + (granule_begin - first);
        std::memcpy(where, base + ((granule_begin + rotation(origin)) & (period_ - 1)), granule_bytes);
        const std::uint64_t stamp[4] = {stamp_magic ^ settings_.seed, origin.file, granule_begin, origin.generation};
        std::memcpy(where + stamp_begin(granule_begin, origin), stamp, sizeof stamp);
    }
    return {bytes.begin() + static_cast<std::ptrdiff_t>(offset - first),
            bytes.begin() + static_cast<std::ptrdiff_t>(offset - first + length)};
}

PayloadImage::BaseStorage PayloadImage::choose_base_storage(std::uint64_t period, std::uint64_t max_length,
                                                            std::uint64_t images_on_node) {
    constexpr std::uint64_t most = 64ULL << 20U, longest_copied = 64ULL << 10U;
    const bool fit = memory_for(period, max_length) <= most / std::max<std::uint64_t>(images_on_node, 1);
    return fit || max_length > longest_copied ? BaseStorage::whole_period : BaseStorage::one_transfer;
}

std::uint64_t PayloadImage::memory_for(std::uint64_t period, std::uint64_t max_length, BaseStorage holds) {
    // Transfers may begin and end inside a granule.
    const std::uint64_t touched = (max_length + 2 * (granule_bytes - 1)) / granule_bytes * granule_bytes;
    return holds == BaseStorage::whole_period ? period + touched : touched;
}

PayloadImage::PayloadImage(const PayloadBase& base, std::byte* memory, std::uint64_t max_length, BaseStorage holds)
    : base_(&base),
      memory_(memory),
      base_storage_(holds),
      mask_(base.period() - 1),
      seed_(base.settings().seed),
      size_(memory_for(base.period(), max_length, holds)) {
    const plan::Payload& settings = base.settings();
    is_stamped_only_ =
        settings.kind == plan::PayloadKind::stamped && settings.duplicates <= 0 && holds == BaseStorage::whole_period;
    if (holds == BaseStorage::one_transfer) {
        shared_ = base.data();
        std::memset(memory, 0, size_);  // taken now, not in the timed loop
        return;
    }
    base.copy_to(memory);
    for (std::uint64_t granule_begin = base.period(); granule_begin < size_; granule_begin += base.period()) {
        std::memcpy(memory + granule_begin, memory, std::min(base.period(), size_ - granule_begin));
    }
}

bool PayloadImage::stamp_all_granules(std::uint64_t bytes) noexcept {
    if (!has_stamps_ && bytes < size_) {
        return false;
    }
    const StampWriter<false> pen = this->stamp_writer<false>();
    for (std::uint64_t position = 0; position < size_ && !has_stamps_; position += granule_bytes) {
        pen.stamp(position, 0);
    }
    has_stamps_ = true;
    return true;
}

/// The base from `position` on, where a transfer is made.
std::byte* PayloadImage::copy(std::uint64_t position, std::uint64_t bytes) noexcept {
    const std::uint64_t period = mask_ + 1;
    for (std::uint64_t done = 0; done < bytes;) {
        const std::uint64_t from = (position + done) & mask_;
        const std::uint64_t part = std::min(bytes - done, period - from);
        std::memcpy(memory_ + done, shared_ + from, part);
        done += part;
    }
    return memory_;
}

std::byte* PayloadImage::make_packet(std::uint64_t offset, std::uint64_t length) noexcept {
    const IorPacket packet{base_->settings().kind, static_cast<std::uint32_t>(seed_), origin_.writer};
    if (packet_of_ != origin_.writer) {
        fill_packet(packet, memory_, length);
        packet_of_ = origin_.writer;
    }
    set_packet_offset(packet, memory_, length, offset);
    return memory_;
}

std::byte* PayloadImage::make_content(std::uint64_t offset, std::uint64_t length) noexcept {
    const plan::Payload& settings = base_->settings();
    if (is_ior_payload(settings.kind)) {
        return make_packet(offset, length);
    }
    const std::uint64_t inside = offset & (granule_bytes - 1);
    const std::uint64_t position = (offset - inside + rotation_) & mask_;
    const bool random = settings.kind == plan::PayloadKind::random;
    const bool zero = settings.kind == plan::PayloadKind::zero;
    const bool copied = base_storage_ == BaseStorage::one_transfer && !random && !zero;
    std::byte* const here = copied ? copy(position, (inside + length + granule_bytes - 1) & ~(granule_bytes - 1))
                            : base_storage_ == BaseStorage::one_transfer ? memory_
                                                                         : memory_ + position;
    if (zero) {
        return here + inside;
    }
    const auto threshold = static_cast<std::uint64_t>(settings.duplicates * 0x1p53);
    for (std::uint64_t done = 0; done < inside + length; done += granule_bytes) {
        const std::uint64_t granule_begin = offset - inside + done;
        std::byte* where = here + done;
        const std::uint64_t identity = mix64(mix64(origin_.file ^ seed_) + granule_begin);
        const bool duplicate = (identity >> 11U) < threshold;
        if (random) {
            const std::uint64_t key = duplicate ? mix64(seed_ + identity % 64) : mix64(identity ^ origin_.generation);
            fill(where, granule_bytes, key, settings.compressible);
        }
        // Duplicates equal others at the same position of the base: their content does not identify them.
        const std::uint64_t stamp[4] = {stamp_magic ^ seed_, duplicate ? 0 : origin_.file,
                                        duplicate ? 0 : granule_begin, duplicate ? 0 : origin_.generation};
        std::memcpy(where + (random ? 0 : stamp_begin_in_granule(position + done, stamp_begin_mask(base_->period()))),
                    stamp, sizeof stamp);
    }
    return here + inside;
}

}  // namespace sonde::payload
