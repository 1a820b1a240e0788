// SPDX-License-Identifier: Apache-2.0
// Extents of a file on a volume: which drive has which byte, held against a calculation byte by byte.
#include "layouts/local_layout.hpp"

#include "../temporary_folder.hpp"
#include "layouts/layout_queries.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <map>
#include <random>
#include <string>
#include <vector>

using sonde::layouts::compute_bytes_by_target;
using sonde::layouts::ExtentList;
using sonde::layouts::FileExtent;
using sonde::layouts::find_targets_of_byte;
using sonde::layouts::has_several_parts;
using sonde::layouts::make_local_layout;
using sonde::layouts::StripeLayout;
using sonde::patterns::StripeMap;
using sonde::records::Volume;
using sonde::tests::TemporaryFolder;

namespace {

using DriveNames = std::vector<std::string>;

/// "" = nobody knows.
std::string drive_at(const Volume& volume, const ExtentList& extents, std::uint64_t byte) {
    for (const FileExtent& extent : extents.extents) {
        if (byte < extent.offset || byte >= extent.offset + extent.length || !extent.has_position) {
            continue;
        }
        const std::uint64_t position = extent.position + (byte - extent.offset);
        for (const auto& piece : volume.pieces) {
            if (position >= piece.start && position < piece.end) {
                return piece.stripe > 0 ? piece.drives[(position + piece.shift) / piece.stripe % piece.drives.size()]
                                        : piece.drives[0];
            }
        }
    }
    return "";
}

}  // namespace

TEST_CASE("random extents map to the drives of a bytewise count") {
    std::mt19937 random(11);
    const auto below = [&random](std::uint64_t limit) { return random() % limit; };
    for (int round = 0; round < 200; ++round) {
        Volume volume{"vg", {}};
        for (std::uint64_t start = 0, pieces = 1 + below(3); pieces > 0; --pieces) {
            auto& piece = volume.pieces.emplace_back();
            piece.start = start;
            piece.end = start += 300 + below(900);
            piece.stripe = below(4) == 0 ? 0 : 1 + below(40);
            for (std::uint64_t drives = piece.stripe == 0 ? 1 : 1 + below(4); drives > 0; --drives) {
                piece.drives.push_back("sd" + std::to_string(below(6)));
            }
            piece.shift = piece.stripe == 0 ? 0 : below(piece.stripe * piece.drives.size());
        }
        ExtentList extents;
        for (std::uint64_t offset = below(30); offset < 600;) {
            FileExtent extent{offset, below(1000), 1 + below(200), below(5) > 0};
            extents.extents.push_back(extent);
            offset += extent.length + (below(3) == 0 ? below(20) : 0);
        }
        const StripeLayout layout = make_local_layout(volume, extents);
        const auto stripes = sonde::layouts::to_file_stripes(layout);
        DriveNames names;
        const StripeMap map(stripes, [&names](const std::string& name) {
            names.push_back(name);
            return static_cast<std::uint32_t>(names.size() - 1);
        });
        if (!has_several_parts(volume)) {  // one drive has the file, holes and all
            CHECK(find_targets_of_byte(layout, 5) == volume.pieces[0].drives);
            continue;
        }
        const std::uint64_t size = extents.extents.back().offset + extents.extents.back().length;
        std::map<std::string, std::uint64_t> held;
        for (std::uint64_t byte = 0; byte < size; ++byte) {
            const std::string drive = drive_at(volume, extents, byte);
            const DriveNames targets = find_targets_of_byte(layout, byte);
            REQUIRE((targets.empty() || targets[0] == "?" ? "" : targets[0]) == drive);
            const StripeMap::StripeExtent stretch = map.find(byte);
            REQUIRE((stretch.target == StripeMap::no_target ? "" : names[stretch.target]) == drive);
            REQUIRE((stretch.from <= byte && byte < stretch.to));
            held[drive.empty() ? "?" : drive] += drive.empty() ? 0 : 1;
        }
        auto sums = compute_bytes_by_target(layout, size);
        sums.erase("?");
        held.erase("?");
        REQUIRE(sums == held);
    }
}

TEST_CASE("consecutive extents are one fragment, unplaced are counted") {
    const Volume drive{"sda1", {{0, ~0ULL, 0, 0, {"sda1"}}}};
    const StripeLayout layout = make_local_layout(
        drive, {{{0, 1000, 100}, {100, 1100, 50}, {150, 5000, 30}, {180, 0, 20, false}, {300, 5150, 10}}});
    CHECK(layout.kind == "local");
    REQUIRE(layout.extents);
    CHECK(layout.extents->extent_count == 5);
    CHECK(layout.extents->fragment_count == 3);
    CHECK(layout.extents->longest_bytes == 150);
    CHECK(layout.extents->unplaced_bytes == 20);
    CHECK(layout.extents->are_all_known);
    CHECK_FALSE(has_several_parts(drive));
    CHECK(compute_bytes_by_target(layout, 310) == std::map<std::string, std::uint64_t>{{"sda1", 310}});
}

TEST_CASE("drives in unknown order are one target with members") {
    const Volume parity{"md0", {{0, ~0ULL, 0, 0, {"sda2", "sdb2", "sdc2"}}}};
    const StripeLayout layout = make_local_layout(parity, {{{0, 4096, 100}}});
    REQUIRE(layout.components.size() == 1);
    CHECK(layout.components[0].targets == DriveNames{"md0"});
    CHECK(layout.components[0].target_members == DriveNames{"sda2", "sdb2", "sdc2"});
    CHECK(compute_bytes_by_target(layout, 100) == std::map<std::string, std::uint64_t>{{"md0", 100}});
    CHECK_FALSE(has_several_parts(parity));
}

TEST_CASE("extents beyond the limit belong to an unknown drive") {
    const Volume striped{"md0", {{0, ~0ULL, 10, 0, {"sda", "sdb"}}}};
    ExtentList extents{{{0, 0, 10}, {10, 10, 10}}};
    extents.is_complete = false;
    const StripeLayout layout = make_local_layout(striped, extents);
    CHECK_FALSE(layout.extents->are_all_known);
    CHECK(compute_bytes_by_target(layout, 100) ==
          std::map<std::string, std::uint64_t>{{"sda", 10}, {"sdb", 10}, {"?", 80}});
    CHECK(layout.volume_components.size() == 1);
}

TEST_CASE("a real file has its bytes in its extents, and a hole in none") {
    const TemporaryFolder folder;
    constexpr std::uint64_t mib = 1 << 20;
    const std::string path = folder.write("file", std::string(mib, 'x'));
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const std::string end(mib, 'y');
    REQUIRE(::pwrite(file, end.data(), mib, 8 * mib) == static_cast<ssize_t>(mib));
    REQUIRE(::fsync(file) == 0);
    ::close(file);
    const auto extents = sonde::layouts::read_extents(path, 9 * mib, 1000);
    if (!extents) {
        MESSAGE("the file system of the build folder tells no extents");
        return;
    }
    CHECK(extents->is_complete);
    std::uint64_t bytes = 0;
    for (const FileExtent& extent : extents->extents) {
        CHECK((extent.offset + extent.length <= mib || extent.offset >= 8 * mib));
        bytes += extent.length;
    }
    CHECK(bytes == 2 * mib);
    CHECK_FALSE(sonde::layouts::read_extents(path, 9 * mib, 1)->is_complete);
    CHECK_FALSE(sonde::layouts::read_extents(folder / "none", mib, 10));
}
