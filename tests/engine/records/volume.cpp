// SPDX-License-Identifier: Apache-2.0
// What lies beneath a block device, from trees in the form of sysfs and tables in that of dmsetup: this is how they
// look on machines with md and LVM (the kernel of the tests needs neither).
#include "records/volume.hpp"

#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

using sonde::records::read_volume;
using sonde::records::Volume;
using sonde::records::VolumePiece;
using sonde::tests::TemporaryFolder;

namespace {

using Names = std::vector<std::string>;
constexpr std::uint64_t gib = 1ULL << 30, mib = 1ULL << 20, sector = 512;

/// A root with /sys/dev/block, its links and the folders that they lead to.
class Sysfs {
 public:
    void disk(const std::string& name, const std::string& number, std::uint64_t bytes) {
        add("devices/pci0000:00/block/" + name, number, bytes);
    }
    void partition(const std::string& disk, const std::string& name, const std::string& number, std::uint64_t start,
                   std::uint64_t bytes) {
        const std::string folder = folders_.at(disk) + "/" + name;
        add(folder, number, bytes);
        root_->write("sys/" + folder + "/partition", "1\n");
        root_->write("sys/" + folder + "/start", std::to_string(start / sector) + "\n");
    }
    void md(const std::string& name, const std::string& number, const std::string& level, std::uint64_t chunk,
            const Names& members, std::uint64_t kib_each, int layout = 0) {
        const std::string folder = "devices/virtual/block/" + name;
        add(folder, number, kib_each * 1024 * members.size());
        const std::string md = "sys/" + folder + "/md/";
        root_->write(md + "level", level + "\n");
        root_->write(md + "chunk_size", std::to_string(chunk) + "\n");
        root_->write(md + "raid_disks", std::to_string(members.size()) + "\n");
        root_->write(md + "layout", std::to_string(layout) + "\n");
        for (std::size_t i = 0; i < members.size(); ++i) {
            const std::string role = md + "dev-" + members[i] + "/";
            root_->write(role + "size", std::to_string(kib_each) + "\n");
            link("/sys/" + folders_.at(members[i]), role + "block");
            link("dev-" + members[i], md + "rd" + std::to_string(i));
            slave(folder, members[i]);
        }
    }
    void mapper(const std::string& device, const std::string& number, const std::string& name, const std::string& uuid,
                const Names& members, const std::string& table) {
        const std::string folder = "devices/virtual/block/" + device;
        add(folder, number, gib);
        root_->write("sys/" + folder + "/dm/name", name + "\n");
        root_->write("sys/" + folder + "/dm/uuid", uuid + "\n");
        for (const std::string& member : members) {
            slave(folder, member);
        }
        tables_[name] = table;
    }
    void size_of_member(const std::string& md, const std::string& member, std::uint64_t kib) const {
        root_->write("sys/devices/virtual/block/" + md + "/md/dev-" + member + "/size", std::to_string(kib) + "\n");
    }
    Volume at(const std::string& number) const {
        const auto table = [this](const std::string& name) {
            const auto match = tables_.find(name);
            return match == tables_.end() ? std::string() : match->second;
        };
        const auto volume = read_volume(number, table, root_->path());
        REQUIRE(volume);
        return *volume;
    }
    const std::string& root() const { return root_->path(); }

 private:
    void add(const std::string& folder, const std::string& number, std::uint64_t bytes) {
        root_->write("sys/" + folder + "/dev", number + "\n");
        root_->write("sys/" + folder + "/size", std::to_string(bytes / sector) + "\n");
        folders_[std::filesystem::path(folder).filename().string()] = folder;
        std::filesystem::create_directories(*root_ / "sys/dev/block");
        link("/sys/" + folder, "sys/dev/block/" + number);
    }
    /// Links of sysfs are relative; here they hold the root of the test.
    void link(const std::string& to, const std::string& from) const {
        std::filesystem::create_symlink(to.front() == '/' ? root_->path() + to : to, *root_ / from);
    }
    void slave(const std::string& folder, const std::string& member) const {
        std::filesystem::create_directories(*root_ / ("sys/" + folder + "/slaves"));
        link("/sys/" + folders_.at(member), "sys/" + folder + "/slaves/" + member);
    }

    std::unique_ptr<TemporaryFolder> root_ = std::make_unique<TemporaryFolder>();
    std::map<std::string, std::string> folders_, tables_;
};

Sysfs two_drives() {
    Sysfs sys;
    sys.disk("sda", "8:0", 100 * gib);
    sys.disk("sdb", "8:16", 100 * gib);
    sys.partition("sda", "sda2", "8:2", gib, 50 * gib);
    sys.partition("sdb", "sdb2", "8:18", gib, 50 * gib);
    return sys;
}

/// By the meaning of a piece, as slowly as it can be said.
std::string drive_of(const Volume& volume, std::uint64_t position) {
    for (const VolumePiece& piece : volume.pieces) {
        if (position >= piece.start && position < piece.end) {
            return piece.stripe > 0 ? piece.drives[(position + piece.shift) / piece.stripe % piece.drives.size()]
                   : piece.drives.size() > 1 ? "one of several"
                                             : piece.drives[0];
        }
    }
    return "";
}

}  // namespace

TEST_CASE("drive_and_partition_have_kernel_names") {
    const Sysfs sys = two_drives();
    CHECK(sys.at("8:0").name == "sda");
    CHECK(sys.at("8:0").drives() == Names{"sda"});
    CHECK(sys.at("8:18").drives() == Names{"sdb2"});
    CHECK(sys.at("8:18").pieces.size() == 1);
    CHECK_FALSE(read_volume(
        "8:99", [](const std::string&) { return std::string(); }, sys.root()));
}

TEST_CASE("md_raid0_stripes_over_members_by_role") {
    Sysfs sys = two_drives();
    sys.md("md0", "9:0", "raid0", 512 * 1024, {"sdb2", "sda2"}, 10 * gib / 1024);
    const Volume volume = sys.at("9:0");
    CHECK(volume.drives() == Names{"sdb2", "sda2"});
    REQUIRE(volume.pieces.size() == 1);
    CHECK(volume.pieces[0].stripe == 512 * 1024);
    CHECK(volume.pieces[0].end == 20 * gib);
    CHECK(drive_of(volume, 0) == "sdb2");
    CHECK(drive_of(volume, 512 * 1024 - 1) == "sdb2");
    CHECK(drive_of(volume, 512 * 1024) == "sda2");
    CHECK(drive_of(volume, mib) == "sdb2");
}

TEST_CASE("md_raid0_of_unequal_drives_has_two_layouts") {
    for (const int layout : {1, 2, 0}) {
        Sysfs sys = two_drives();
        sys.disk("sdc", "8:32", 100 * gib);
        sys.md("md0", "9:0", "raid0", 64 * 1024, {"sda2", "sdb2", "sdc"}, 1024, layout);
        sys.size_of_member("md0", "sda2", 320 + 7);  // whole chunks count: 5 of them
        const Volume volume = sys.at("9:0");
        REQUIRE(volume.pieces.size() == 2);
        const std::uint64_t second = 3 * 5 * 64 * 1024ULL;
        CHECK(volume.pieces[1].start == second);
        CHECK(volume.pieces[1].end == second + 2 * 11 * 64 * 1024ULL);
        CHECK(volume.pieces[1].drives == Names{"sdb2", "sdc"});
        CHECK(drive_of(volume, second - 1) == "sdc");
        // Chunk 15 of the array, the first one of its zone.
        CHECK(drive_of(volume, second) == (layout == 1 ? "sdc" : layout == 2 ? "sdb2" : "one of several"));
    }
}

TEST_CASE("parity_raid_has_drives_without_order") {
    for (const char* level : {"raid5", "raid1", "raid10"}) {
        Sysfs sys = two_drives();
        sys.md("md0", "9:0", level, 65536, {"sda2", "sdb2"}, 1024);
        const Volume volume = sys.at("9:0");
        CHECK(volume.name == "md0");
        CHECK(volume.drives() == Names{"sda2", "sdb2"});
        CHECK(drive_of(volume, 0) == "one of several");
    }
}

TEST_CASE("lvm_linear_and_striped_tables_are_resolved") {
    Sysfs sys = two_drives();
    // 2 GiB on sda2, then stripes of 256 sectors over both; then a piece of 1 GiB + 64 KiB of sdb2.
    sys.mapper("dm-0", "253:0", "vg0-scratch", "LVM-x", {"sda2", "sdb2"},
               "0 4194304 linear 8:2 2048\n4194304 4194560 striped 2 256 8:2 8390656 8:18 2048\n"
               "8388864 2097280 linear 8:18 8390656\n");
    const Volume volume = sys.at("253:0");
    CHECK(volume.name == "vg0-scratch");
    REQUIRE(volume.pieces.size() == 3);
    CHECK(drive_of(volume, 2 * gib - 1) == "sda2");
    CHECK(drive_of(volume, 2 * gib) == "sda2");
    CHECK(drive_of(volume, 2 * gib + 128 * 1024) == "sdb2");
    CHECK(drive_of(volume, 2 * gib + 256 * 1024) == "sda2");
    CHECK(drive_of(volume, 8388864 * sector) == "sdb2");
    CHECK(volume.pieces.back().end == (8388864 + 2097280) * sector);

    sys.mapper("dm-1", "253:1", "crypt", "CRYPT-LUKS2-x", {"sda2"}, "0 1000 crypt aes-xts-plain64 :64:logon:x 0 8:2 9");
    CHECK(sys.at("253:1").drives() == Names{"sda2"});
    sys.mapper("dm-2", "253:2", "vg0-thin", "LVM-y", {"dm-0"}, "0 1000 thin 253:0 1");
    CHECK(drive_of(sys.at("253:2"), 0) == "one of several");
    CHECK(sys.at("253:2").drives() == Names{"sda2", "sdb2"});
}

TEST_CASE("volume_on_raid0_has_stripe_shift") {
    Sysfs sys = two_drives();
    sys.md("md0", "9:0", "raid0", mib, {"sda2", "sdb2"}, 10 * gib / 1024);
    // The piece begins with 1.5 MiB of the array and 1 MiB of the volume.
    sys.mapper("dm-0", "253:0", "vg0-a", "LVM-x", {"md0", "sda2"},
               "0 2048 linear 8:2 0\n2048 1048576 linear 9:0 3072\n");
    const Volume volume = sys.at("253:0");
    for (std::uint64_t position = mib; position < 9 * mib; position += mib / 4) {
        const std::uint64_t array_position = position - mib + mib + mib / 2;
        CHECK(drive_of(volume, position) == (array_position / mib % 2 == 0 ? "sda2" : "sdb2"));
    }
    // A partition of the array, too.
    sys.partition("md0", "md0p1", "259:0", 3 * mib / 2, gib);
    const Volume part = sys.at("259:0");
    CHECK(part.name == "md0p1");
    CHECK(drive_of(part, 0) == "sdb2");
    CHECK(drive_of(part, mib / 2) == "sda2");
    CHECK(part.pieces.back().end == gib);
}

TEST_CASE("unknown_mapper_table_leaves_drives") {
    Sysfs sys = two_drives();
    for (const char* table : {"", "0 100 mirror 8:2", "0 100 striped 2 0 8:2 0 8:18 0", "0 100 striped 3 8 8:2 0",
                              "nonsense", "0 100 striped 18446744073709551615 8 8:2 0 8:18 0"}) {
        sys = two_drives();
        sys.mapper("dm-0", "253:0", "vg0-a", "LVM-x", {"sda2", "sdb2"}, table);
        CHECK(sys.at("253:0").drives() == Names{"sda2", "sdb2"});
        CHECK(drive_of(sys.at("253:0"), 5) == "one of several");
    }
    sys.mapper("dm-1", "253:1", "mpatha", "mpath-3600", {"sda", "sdb"}, "0 100 multipath 0 0 1 1 service-time 0 2 2");
    CHECK(sys.at("253:1").drives() == Names{"mpatha"});
}
