// SPDX-License-Identifier: Apache-2.0
// Formats as in the kernel's Documentation: ABI/stable/sysfs-block, admin-guide/md.rst, device-mapper/linear and
// striped.
#include "records/volume.hpp"

#include "records/program_output.hpp"
#include "records/system_file.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

namespace sonde::records {
namespace {

namespace sysfs_paths = std::filesystem;

constexpr std::uint64_t sector_bytes = 512;
// Limit against cycles; deeper than any real stack.
constexpr int deepest_stack = 8;

/// The bytes [from, from + length) of `below`, mapped to offsets from `start` of the device above.
std::vector<VolumePiece> intersect_pieces(const Volume& below, std::uint64_t start, std::uint64_t from,
                                          std::uint64_t length) {
    std::vector<VolumePiece> merged;
    const std::uint64_t to = length > ~0ULL - from ? ~0ULL : from + length;
    for (const VolumePiece& piece : below.pieces) {
        const std::uint64_t first = std::max(from, piece.start);
        const std::uint64_t last = std::min(to, piece.end);
        if (first >= last) {
            continue;
        }
        VolumePiece& added = merged.emplace_back(piece);
        added.start = start + (first - from);
        added.end = last == ~0ULL ? ~0ULL : start + (last - from);
        if (const std::uint64_t turn = piece.stripe * piece.drives.size(); turn > 0) {
            added.shift = (piece.shift + from % turn + turn - start % turn) % turn;
        }
    }
    return merged;
}

/// Resolves the devices below a device.
class DeviceStack {
 public:
    DeviceStack(const MapperTable& table, const std::string& root) : table_(table), root_(root) {}

    std::optional<Volume> read_device(const std::string& device, int depth = 0) const {
        std::error_code failed;
        const sysfs_paths::path folder = sysfs_paths::canonical(root_ + "/sys/dev/block/" + device, failed);
        if (failed || depth > deepest_stack) {
            return std::nullopt;
        }
        return read_device_folder(folder, depth);
    }

 private:
    Volume read_device_folder(const sysfs_paths::path& folder, int depth) const {
        Volume volume;
        volume.name = folder.filename().string();
        std::replace(volume.name.begin(), volume.name.end(), '!', '/');  // as sysfs writes cciss/c0d0
        if (exists(folder / "partition")) {
            const Volume disk = read_device_folder(folder.parent_path(), depth + 1);
            // A partition keeps its name, which contains that of the drive.
            const std::uint64_t start = read_system_number((folder / "start").string()).value_or(0) * sector_bytes;
            volume.pieces = has_members(folder.parent_path())
                                ? intersect_pieces(disk, 0, start, read_device_bytes(folder))
                                : make_single_drive(volume.name);
        } else if (exists(folder / "md")) {
            volume.pieces = read_md(folder, depth);
        } else if (exists(folder / "dm")) {
            volume.name = read_system_text((folder / "dm/name").string()).value_or(volume.name);
            volume.pieces = read_mapper(folder, volume.name, depth);
        } else {
            volume.pieces = make_single_drive(volume.name);
        }
        return volume;
    }

    static bool exists(const sysfs_paths::path& path) {
        std::error_code failed;
        return sysfs_paths::exists(path, failed);
    }
    static bool has_members(const sysfs_paths::path& folder) { return exists(folder / "md") || exists(folder / "dm"); }
    static std::vector<VolumePiece> make_single_drive(const std::string& name) { return {{0, ~0ULL, 0, 0, {name}}}; }
    static std::uint64_t read_device_bytes(const sysfs_paths::path& folder) {
        const std::uint64_t sectors = read_system_number((folder / "size").string()).value_or(0);
        return sectors == 0 ? ~0ULL : sectors * sector_bytes;
    }

    /// The device "8:16" or, as a link to its folder, one of a RAID.
    Volume read_member(const std::string& device, int depth) const {
        return read_device(device, depth + 1).value_or(Volume{device, make_single_drive(device)});
    }

    /// All drives below, sorted by name, without a byte order.
    std::vector<VolumePiece> list_drives_in_unknown_order(const sysfs_paths::path& folder, int depth) const {
        std::set<std::string> names;
        std::error_code failed;
        for (const auto& entry : sysfs_paths::directory_iterator(folder / "slaves", failed)) {
            const auto number = read_system_text((entry.path() / "dev").string());
            const std::vector<std::string> drives =
                number ? read_member(*number, depth).drives() : std::vector{entry.path().filename().string()};
            names.insert(drives.begin(), drives.end());
        }
        if (names.empty()) {
            return make_single_drive(folder.filename().string());
        }
        return {{0, ~0ULL, 0, 0, {names.begin(), names.end()}}};
    }

    /// A striped volume whose members must be single drives.
    static std::optional<std::vector<std::string>> list_single_drives(const std::vector<Volume>& members) {
        std::vector<std::string> names;
        for (const Volume& member_volume : members) {
            const std::vector<std::string> drives = member_volume.drives();
            if (drives.size() != 1) {
                return std::nullopt;
            }
            names.push_back(drives.front());
        }
        return names;
    }

    std::vector<VolumePiece> read_md(const sysfs_paths::path& folder, int depth) const {
        const sysfs_paths::path md = folder / "md";
        const std::uint64_t chunk = read_system_number((md / "chunk_size").string()).value_or(0);
        const std::uint64_t disks = read_system_number((md / "raid_disks").string()).value_or(0);
        if (read_system_text((md / "level").string()) != "raid0" || chunk == 0 || disks == 0) {
            return list_drives_in_unknown_order(folder, depth);
        }
        std::vector<Volume> members;
        std::vector<std::uint64_t> sizes;  // whole chunks
        for (std::uint64_t i = 0; i < disks; ++i) {
            const sysfs_paths::path role = md / ("rd" + std::to_string(i));
            const auto number = read_system_text((role / "block/dev").string());
            const auto kib = read_system_number((role / "size").string());
            if (!number || !kib) {
                return list_drives_in_unknown_order(folder, depth);
            }
            members.push_back(read_member(*number, depth));
            sizes.push_back(*kib * 1024 / chunk * chunk);
        }
        const auto names = list_single_drives(members);
        return names ? make_zones(*names, sizes, chunk, read_system_number((md / "layout").string()).value_or(0))
                     : list_drives_in_unknown_order(folder, depth);
    }

    /// RAID 0 over drives of different sizes continues on the drives with space left. Such arrays count stripes from
    /// the start of the array (layout 1) or of the zone (layout 2); without a layout the order is unknown.
    static std::vector<VolumePiece> make_zones(const std::vector<std::string>& names,
                                               const std::vector<std::uint64_t>& sizes, std::uint64_t chunk,
                                               std::uint64_t layout) {
        std::vector<VolumePiece> zones;
        std::uint64_t start = 0;
        for (std::uint64_t used = 0;;) {
            VolumePiece zone;
            std::uint64_t next = ~0ULL;
            for (std::size_t i = 0; i < names.size(); ++i) {
                if (sizes[i] > used) {
                    zone.drives.push_back(names[i]);
                    next = std::min(next, sizes[i]);
                }
            }
            if (zone.drives.empty()) {
                return zones;
            }
            zone.start = start;
            zone.end = start += (next - used) * zone.drives.size();
            zone.stripe = used > 0 && layout == 0 && zone.drives.size() > 1 ? 0 : chunk;
            const std::uint64_t turn = zone.stripe * zone.drives.size();
            zone.shift = layout == 2 && turn > 0 ? (turn - zone.start % turn) % turn : 0;
            used = next;
            zones.push_back(std::move(zone));
        }
    }

    std::vector<VolumePiece> read_mapper(const sysfs_paths::path& folder, const std::string& name, int depth) const {
        // Multipath: the paths to one drive are not drives.
        if (read_system_text((folder / "dm/uuid").string()).value_or("").starts_with("mpath-")) {
            return make_single_drive(name);
        }
        std::vector<VolumePiece> pieces;
        std::istringstream table(table_(name));
        for (std::string line; std::getline(table, line);) {
            const std::vector<VolumePiece> line_pieces = parse_table_line(line, depth);
            if (line_pieces.empty()) {
                return list_drives_in_unknown_order(folder, depth);
            }
            pieces.insert(pieces.end(), line_pieces.begin(), line_pieces.end());
        }
        return pieces.empty() ? list_drives_in_unknown_order(folder, depth) : pieces;
    }

    /// "0 83886080 linear 8:16 2048", "… crypt aes-xts-plain64 KEY 0 8:16 4096", "… striped 2 128 8:16 2048 8:32 2048";
    /// other kinds give nothing.
    std::vector<VolumePiece> parse_table_line(const std::string& line, int depth) const {
        std::istringstream words(line);
        std::uint64_t start = 0, length = 0, count = 0, chunk = 0;
        std::string kind, device;
        words >> start >> length >> kind;
        std::uint64_t from = 0;
        if (std::string cipher, key, iv; kind == "crypt") {
            words >> cipher >> key >> iv;
        }
        if ((kind == "linear" || kind == "crypt") && words >> device >> from && length > 0) {
            return intersect_pieces(read_member(device, depth), start * sector_bytes, from * sector_bytes,
                                    length * sector_bytes);
        }
        if (kind != "striped" || !(words >> count >> chunk) || chunk == 0) {
            return {};
        }
        std::vector<Volume> members;
        while (members.size() < count && words >> device >> from) {
            Volume volume = read_member(device, depth);
            volume.pieces = intersect_pieces(volume, 0, from * sector_bytes, length / count * sector_bytes);
            members.push_back(std::move(volume));
        }
        const auto names = list_single_drives(members);
        if (!names || names->size() != count || count == 0) {
            return {};
        }
        VolumePiece piece;
        piece.start = start * sector_bytes;
        piece.end = piece.start + length * sector_bytes;
        piece.stripe = chunk * sector_bytes;
        piece.drives = *names;
        const std::uint64_t turn = piece.stripe * count;
        piece.shift = (turn - piece.start % turn) % turn;
        return {piece};
    }

    const MapperTable& table_;
    const std::string& root_;
};

}  // namespace

std::vector<std::string> Volume::drives() const {
    std::vector<std::string> names;
    for (const VolumePiece& piece : pieces) {
        for (const std::string& drive : piece.drives) {
            if (std::find(names.begin(), names.end(), drive) == names.end()) {
                names.push_back(drive);
            }
        }
    }
    return names;
}

std::optional<Volume> read_volume(const std::string& device, const MapperTable& table, const std::string& system_root) {
    return DeviceStack(table, system_root).read_device(device);
}

std::string read_mapper_table(const std::string& name) {
    ProgramOutput output = run_and_read({"dmsetup", "table", name});
    // sbin is often missing in PATH.
    output = output.succeeded() || output.timed_out ? output : run_and_read({"/usr/sbin/dmsetup", "table", name});
    return output.succeeded() ? output.text : std::string();
}

}  // namespace sonde::records
