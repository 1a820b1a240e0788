// SPDX-License-Identifier: Apache-2.0
#include "payload/payload.hpp"

#include "patterns/permutation.hpp"

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

struct Stamp {
    std::uint64_t magic = 0, file = 0, offset = 0, generation = 0;
};

Stamp stamp_in(const std::byte* where) {
    Stamp stamp;
    std::memcpy(&stamp, where, sizeof stamp);
    return stamp;
}

bool all_zero(const std::byte* data, std::uint64_t bytes) {
    return bytes > 0 && data[0] == std::byte{0} && std::memcmp(data, data + 1, bytes - 1) == 0;
}

}  // namespace

std::uint64_t period_for(std::uint64_t transfer) {
    return transfer < (256U << 10U) ? 256U << 10U : 1U << 20U;
}

Base::Base(const plan::Payload& settings, std::uint64_t period) : settings_(settings), period_(period), bytes_(period) {
    if (settings.kind != plan::PayloadKind::zero) {
        fill(bytes_.data(), period, mix64(settings.seed), settings.compressible);
    }
}

std::uint64_t Base::rotation(const Origin& origin) const noexcept {
    const std::uint64_t places = period_ / granule;
    return granule * ((mix64(origin.file) + origin.generation * 2654435761ULL) % places);
}

std::uint64_t Image::memory_for(std::uint64_t period, std::uint64_t max_length) {
    // One granule more on each side: transfers may begin and end inside a granule.
    return (period + max_length + 2 * granule + granule - 1) / granule * granule;
}

Image::Image(const Base& base, std::byte* memory, std::uint64_t max_length)
    : base_(&base), memory_(memory), mask_(base.period() - 1), seed_(base.settings().seed) {
    const plan::Payload& settings = base.settings();
    plain_ = settings.kind == plan::PayloadKind::stamped && settings.duplicates <= 0;
    const std::uint64_t size = memory_for(base.period(), max_length);
    for (std::uint64_t at = 0; at < size; at += base.period()) {
        std::memcpy(memory + at, base.data(), std::min(base.period(), size - at));
    }
}

std::byte* Image::make(std::uint64_t offset, std::uint64_t length) noexcept {
    const plan::Payload& settings = base_->settings();
    std::byte* start = memory_ + ((offset + rotation_) & mask_);
    std::byte* first = start - (offset & (granule - 1));
    std::uint64_t at = offset & ~(granule - 1);
    if (settings.kind == plan::PayloadKind::zero) {
        return start;
    }
    const auto threshold = static_cast<std::uint64_t>(settings.duplicates * 0x1p53);
    for (std::byte* where = first; at < offset + length; at += granule, where += granule) {
        const std::uint64_t identity = mix64(mix64(origin_.file ^ seed_) + at);
        const bool duplicate = (identity >> 11U) < threshold;
        if (settings.kind == plan::PayloadKind::random) {
            const std::uint64_t key = duplicate ? mix64(seed_ + identity % 64) : mix64(identity ^ origin_.generation);
            fill(where, granule, key, settings.compressible);
        }
        if (duplicate) {
            // Equal to other duplicates at the same place of the base: nothing in it tells them apart.
            const std::uint64_t same[4] = {magic ^ seed_, 0, 0, 0};
            std::memcpy(where, same, sizeof same);
        } else {
            stamp(where, at, at + 1);
        }
    }
    return start;
}

const char* text(Mismatch::Kind kind) {
    switch (kind) {
        case Mismatch::Kind::changed:
            return "changed bytes";
        case Mismatch::Kind::displaced:
            return "a block from another place of the same file";
        case Mismatch::Kind::foreign:
            return "a block of another file";
        case Mismatch::Kind::stale:
            return "an older version";
        case Mismatch::Kind::torn:
            return "a half-written block";
        case Mismatch::Kind::zeros:
            return "zeros";
        case Mismatch::Kind::truncated:
            return "the end of the file";
    }
    return "?";
}

namespace {

/// The part of one granule that an operation shows.
struct View {
    const std::byte* data = nullptr;
    std::uint64_t at = 0;  ///< place of `data` in the file
    std::uint64_t bytes = 0;
    bool has_stamp() const { return at % granule == 0 && bytes >= sizeof(Stamp); }
};

/// The view of the granule with byte `place` of the file, in an operation of `present` bytes from `offset`.
View view_of(const std::byte* found, std::uint64_t offset, std::uint64_t present, std::uint64_t place) {
    const std::uint64_t at = std::max(place & ~(granule - 1), offset);
    return {found + (at - offset), at, std::min(granule - (at & (granule - 1)), offset + present - at)};
}

/// Kind and words from the stamp of a wrong granule. False when the stamp is the expected one, or not ours.
bool judge_stamp(Mismatch& mismatch, const View& view, const Image& expected) {
    const Stamp stamp = stamp_in(view.data);
    const std::string by = ", generation " + std::to_string(stamp.generation);
    if (stamp.magic != (magic ^ expected.seed())) {
        mismatch.text = "holds bytes that this run did not write";
        return false;
    }
    if (stamp.file != expected.origin().file) {
        mismatch.kind = Mismatch::Kind::foreign;
        mismatch.text =
            "holds offset " + std::to_string(stamp.offset) + " of file number " + std::to_string(stamp.file) + by;
    } else if (stamp.offset != view.at) {
        mismatch.kind = Mismatch::Kind::displaced;
        mismatch.text = "holds offset " + std::to_string(stamp.offset) + " of the same file" + by;
    } else if (stamp.generation != expected.origin().generation) {
        mismatch.kind = Mismatch::Kind::stale;
        mismatch.text = "holds generation " + std::to_string(stamp.generation) + ", expected " +
                        std::to_string(expected.origin().generation);
    } else {
        mismatch.text = "differs from byte " + std::to_string(mismatch.offset - view.at) +
                        " of the 4 KiB block on; its stamp is right";
        return false;
    }
    return true;
}

/// Says what is there instead. `found` holds `present` bytes from `offset`; the first wrong one is mismatch.offset.
void explain(Mismatch& mismatch, const Image& expected, const std::byte* found, std::uint64_t offset,
             std::uint64_t present) {
    const View view = view_of(found, offset, present, mismatch.offset);
    if (all_zero(view.data, view.bytes)) {
        mismatch.kind = Mismatch::Kind::zeros;
        mismatch.text = "holds zeros: never written, or lost";
        return;
    }
    mismatch.text = "holds other bytes than were written";
    if (view.has_stamp() && judge_stamp(mismatch, view, expected)) {
        return;
    }
    if (!view.has_stamp()) {
        // A record that begins inside a granule: what fills all that is seen of it, or the next stamp, tells.
        if (const auto older = expected.older_generation(view.data, view.at, view.bytes)) {
            mismatch.kind = Mismatch::Kind::stale;
            mismatch.text = "holds generation " + std::to_string(*older) + ", expected " +
                            std::to_string(expected.origin().generation);
            return;
        }
        const std::uint64_t next = view.at + view.bytes;
        if (next + sizeof(Stamp) <= offset + present) {
            Mismatch behind = mismatch;
            if (judge_stamp(behind, view_of(found, offset, present, next), expected)) {
                behind.text = "at offset " + std::to_string(next) + " " + behind.text;
                mismatch = behind;
                return;
            }
        }
    }
    // The block begins as expected but goes on with what was there before: it was cut while being written.
    const std::uint64_t rest = view.at + view.bytes - mismatch.offset;
    if (const auto older = expected.older_generation(found + (mismatch.offset - offset), mismatch.offset,
                                                     std::min<std::uint64_t>(rest, 64))) {
        mismatch.kind = Mismatch::Kind::torn;
        mismatch.text = "begins with the expected generation and goes on with generation " + std::to_string(*older);
    }
}

}  // namespace

std::optional<Mismatch> compare(Image& image, const std::byte* found, std::uint64_t offset, std::uint64_t length,
                                std::uint64_t got) {
    const std::byte* expected = image.at(offset, length);
    const std::uint64_t present = std::min(got, length);
    if (present == length && std::memcmp(found, expected, length) == 0) {
        return std::nullopt;
    }
    Mismatch mismatch;
    const auto differs = std::mismatch(found, found + present, expected);
    const auto first = static_cast<std::uint64_t>(differs.first - found);
    if (first == present) {
        mismatch.kind = Mismatch::Kind::truncated;
        mismatch.offset = offset + present;
        mismatch.bytes = length - present;
        mismatch.text = "the file ends at byte " + std::to_string(offset + present);
        return mismatch;
    }
    mismatch.offset = offset + first;
    for (std::uint64_t i = first; i < present; ++i) {
        mismatch.bytes += found[i] != expected[i] ? 1U : 0U;
    }
    explain(mismatch, image, found, offset, present);
    return mismatch;
}

std::optional<std::uint64_t> Image::older_generation(const std::byte* found, std::uint64_t offset,
                                                     std::uint64_t length) const {
    // Fewer bytes are equal by chance.
    constexpr std::uint64_t enough = 16;
    if (base_->settings().kind != plan::PayloadKind::stamped || length < enough) {
        return std::nullopt;
    }
    for (Origin older = origin_; older.generation-- > 1;) {
        const std::uint64_t start = (offset + base_->rotation(older)) & mask_;
        if (std::memcmp(found, base_->data() + start, length) == 0) {
            return older.generation;
        }
    }
    return std::nullopt;
}

}  // namespace sonde::payload
