// SPDX-License-Identifier: Apache-2.0
// Identifies the content of a wrong block from the stamps in it and from older content of the file.
#include "payload/compare.hpp"

#include "payload/ior_pattern.hpp"

#include <algorithm>
#include <array>

namespace sonde::payload {

const char* kind_name(Mismatch::MismatchKind kind) {
    switch (kind) {
        case Mismatch::MismatchKind::changed:
            return "changed bytes";
        case Mismatch::MismatchKind::displaced:
            return "a block from another place of the same file";
        case Mismatch::MismatchKind::foreign:
            return "a block of another file";
        case Mismatch::MismatchKind::stale:
            return "an older version";
        case Mismatch::MismatchKind::torn:
            return "a half-written block";
        case Mismatch::MismatchKind::zeros:
            return "zeros";
        case Mismatch::MismatchKind::truncated:
            return "the end of the file";
    }
    return "?";
}

namespace {

bool all_zero(const std::byte* data, std::uint64_t bytes) {
    return bytes > 0 && data[0] == std::byte{0} && std::memcmp(data, data + 1, bytes - 1) == 0;
}

/// A part of what was read, inside one granule.
struct GranuleView {
    const std::byte* data = nullptr;
    std::uint64_t offset = 0;  ///< place of `data` in the file
    std::uint64_t bytes = 0;
};

/// The granule with byte `position` of the file, as far as an operation of `present` bytes from `offset` shows it.
GranuleView view_granule(const std::byte* data, std::uint64_t offset, std::uint64_t present, std::uint64_t position) {
    const std::uint64_t begin = std::max(position & ~(granule_bytes - 1), offset);
    return {data + (begin - offset), begin,
            std::min(granule_bytes - (begin & (granule_bytes - 1)), offset + present - begin)};
}

/// A stamp that was found, and where the byte that it was found at belongs.
struct Stamp {
    Origin origin;
    std::uint64_t position = 0;           ///< in the file that was read
    std::uint64_t expected_position = 0;  ///< in the file that the stamp names
};

/// The first stamp of this run in a view that is not the one expected there; any alignment. `right` becomes true when
/// the expected one is seen.
std::optional<Stamp> find_unexpected_stamp(const GranuleView& view, const PayloadImage& expected, bool& right) {
    const PayloadBase& base = expected.base();
    const std::uint64_t mark = stamp_magic ^ base.settings().seed;
    for (std::uint64_t i = 0; i + stamp_bytes <= view.bytes; ++i) {
        std::array<std::uint64_t, 4> fields{};
        std::memcpy(fields.data(), view.data + i, stamp_bytes);
        if (fields[0] != mark || fields[2] % granule_bytes != 0) {
            continue;
        }
        Stamp stamp{{fields[1], fields[3]}, view.offset + i, 0};
        stamp.expected_position = fields[2] + base.stamp_begin(fields[2], stamp.origin);
        if (stamp.origin.file == expected.origin().file && stamp.origin.generation == expected.origin().generation &&
            stamp.expected_position == stamp.position) {
            right = true;
            continue;
        }
        return stamp;
    }
    return std::nullopt;
}

/// Kind and words for a stamp that does not belong there. `first` is the first byte they are about.
void describe_wrong_stamp(Mismatch& mismatch, const Stamp& stamp, const PayloadImage& expected, std::uint64_t first) {
    const std::string by = ", generation " + std::to_string(stamp.origin.generation);
    const std::string holds = "holds offset " + std::to_string(first + stamp.expected_position - stamp.position);
    if (stamp.origin.file != expected.origin().file) {
        mismatch.kind = Mismatch::MismatchKind::foreign;
        mismatch.describe_mismatch = holds + " of file number " + std::to_string(stamp.origin.file) + by;
    } else if (stamp.expected_position != stamp.position) {
        mismatch.kind = Mismatch::MismatchKind::displaced;
        mismatch.describe_mismatch = holds + " of the same file" + by;
    } else {
        mismatch.kind = Mismatch::MismatchKind::stale;
        mismatch.describe_mismatch = "holds generation " + std::to_string(stamp.origin.generation) + ", expected " +
                                     std::to_string(expected.origin().generation);
    }
}

/// The newest earlier generation of the file that has these bytes (stamped content only).
std::optional<std::uint64_t> older_generation(const PayloadImage& expected, const std::byte* data, std::uint64_t offset,
                                              std::uint64_t length) {
    constexpr std::uint64_t enough = 16;  // fewer bytes are equal by chance
    const PayloadBase& base = expected.base();
    if (base.settings().kind != plan::PayloadKind::stamped || length < enough) {
        return std::nullopt;
    }
    for (Origin older = expected.origin(); older.generation-- > 1;) {
        if (std::memcmp(data, base.make_stamped_content(offset, length, older).data(), length) == 0) {
            return older.generation;
        }
    }
    return std::nullopt;
}

/// Describes the data that was read instead. `data` holds `present` bytes from `offset`; the first wrong one is
/// mismatch.offset.
void explain(Mismatch& mismatch, const PayloadImage& expected, const std::byte* data, std::uint64_t offset,
             std::uint64_t present) {
    const GranuleView view = view_granule(data, offset, present, mismatch.offset);
    if (all_zero(view.data, view.bytes)) {
        mismatch.kind = Mismatch::MismatchKind::zeros;
        mismatch.describe_mismatch = "holds zeros: never written, or lost";
        return;
    }
    if (is_ior_payload(expected.base().settings().kind)) {
        mismatch.describe_mismatch =
            "holds other bytes than task " + std::to_string(expected.origin().writer) + " writes";
        return;
    }
    if (const auto older = older_generation(expected, view.data, view.offset, view.bytes)) {
        mismatch.kind = Mismatch::MismatchKind::stale;
        mismatch.describe_mismatch =
            "holds generation " + std::to_string(*older) + ", expected " + std::to_string(expected.origin().generation);
        return;
    }
    // Not all of the block: it was cut while being written.
    const std::uint64_t remaining = view.offset + view.bytes - mismatch.offset;
    if (const auto older = older_generation(expected, data + (mismatch.offset - offset), mismatch.offset,
                                            std::min<std::uint64_t>(remaining, 64))) {
        mismatch.kind = Mismatch::MismatchKind::torn;
        const std::string there = "generation " + std::to_string(*older);
        mismatch.describe_mismatch = mismatch.offset > view.offset
                                         ? "begins with the expected generation and goes on with " + there
                                         : "begins with " + there + " and goes on with something else";
        return;
    }
    bool right = false;
    if (const auto stamp = find_unexpected_stamp(view, expected, right)) {
        describe_wrong_stamp(mismatch, *stamp, expected, view.offset);
        return;
    }
    if (right) {
        mismatch.describe_mismatch = "differs from byte " + std::to_string(mismatch.offset % granule_bytes) +
                                     " of the 4 KiB block on; its stamp is right";
        return;
    }
    // The visible part of this granule has no stamp; the next granule may have one.
    const std::uint64_t next = view.offset + view.bytes;
    if (next < offset + present) {
        if (const auto stamp = find_unexpected_stamp(view_granule(data, offset, present, next), expected, right)) {
            describe_wrong_stamp(mismatch, *stamp, expected, next);
            mismatch.describe_mismatch = "at offset " + std::to_string(next) + " " + mismatch.describe_mismatch;
            return;
        }
    }
    const std::uint64_t stamp_begin =
        (view.offset & ~(granule_bytes - 1)) + expected.base().stamp_begin(view.offset, expected.origin());
    const bool expected_stamp_is_seen =
        view.offset <= stamp_begin && stamp_begin + stamp_bytes <= view.offset + view.bytes;
    mismatch.describe_mismatch =
        expected_stamp_is_seen ? "holds bytes that this run did not write" : "holds other bytes than were written";
}

}  // namespace

std::optional<Mismatch> compare(PayloadImage& image, const std::byte* data, std::uint64_t offset, std::uint64_t length,
                                std::uint64_t got) {
    const std::byte* expected = image.content_at(offset, length);
    const std::uint64_t present = std::min(got, length);
    if (present == length && std::memcmp(data, expected, length) == 0) {
        return std::nullopt;
    }
    Mismatch mismatch;
    const auto differs = std::mismatch(data, data + present, expected);
    const auto first = static_cast<std::uint64_t>(differs.first - data);
    if (first == present) {
        mismatch.kind = Mismatch::MismatchKind::truncated;
        mismatch.offset = offset + present;
        mismatch.bytes = length - present;
        mismatch.describe_mismatch = "the file ends at byte " + std::to_string(offset + present);
        return mismatch;
    }
    mismatch.offset = offset + first;
    for (std::uint64_t i = first; i < present; ++i) {
        mismatch.bytes += data[i] != expected[i] ? 1U : 0U;
    }
    explain(mismatch, image, data, offset, present);
    return mismatch;
}

}  // namespace sonde::payload
