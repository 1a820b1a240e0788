// SPDX-License-Identifier: Apache-2.0
#include "layouts/local_layout.hpp"

#include "files/descriptor.hpp"
#include "layouts/layout_system.hpp"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>

namespace sonde::layouts {
namespace {

using Pattern = LayoutComponent::Pattern;

constexpr std::uint32_t extents_per_call = 128;
// Of one file; the drives of later components are unknown.
constexpr std::size_t max_components = 4096;

/// Positions on the real-time device of XFS are not those of the file system's device.
bool is_on_realtime_device(int descriptor) {
    struct fsxattr attributes {};
    return ::ioctl(descriptor, FS_IOC_FSGETXATTR, &attributes) == 0 && (attributes.fsx_xflags & FS_XFLAG_REALTIME) != 0;
}

LayoutComponent make_component(const records::Volume& volume, const records::VolumePiece& piece) {
    LayoutComponent component;
    component.start = piece.start;
    component.end = piece.end;
    component.requested_stripes = static_cast<std::uint32_t>(piece.drives.size());
    if (piece.drives.size() > 1 && piece.stripe == 0) {
        component.pattern = Pattern::whole;
        component.targets = {volume.name};
        component.target_members = piece.drives;
        component.requested_stripes = 1;
        return component;
    }
    component.pattern = piece.stripe > 0 ? Pattern::raid0 : Pattern::whole;
    component.stripe_bytes = piece.stripe;
    component.shift_bytes = piece.shift;
    component.targets = piece.drives;
    return component;
}

FileExtents summarize_extents(const ExtentList& extents) {
    FileExtents sum;
    sum.extent_count = extents.extents.size();
    sum.are_all_known = extents.is_complete;
    std::uint64_t length = 0;
    const FileExtent* before = nullptr;
    for (const FileExtent& extent : extents.extents) {
        if (!extent.has_position) {
            sum.unplaced_bytes += extent.length;
            before = nullptr;
            continue;
        }
        const bool follows = before != nullptr && before->offset + before->length == extent.offset &&
                             before->position + before->length == extent.position;
        sum.fragment_count += follows ? 0 : 1;
        length = (follows ? length : 0) + extent.length;
        sum.longest_bytes = std::max(sum.longest_bytes, length);
        before = &extent;
    }
    return sum;
}

/// The part of an extent that lies in a piece of the volume, as a component of the file.
std::optional<LayoutComponent> intersect(const LayoutComponent& piece, const FileExtent& extent) {
    const std::uint64_t first = std::max(extent.position, piece.start);
    const std::uint64_t last = std::min(extent.position + extent.length, piece.end);
    if (first >= last) {
        return std::nullopt;
    }
    LayoutComponent component = piece;
    component.start = extent.offset + (first - extent.position);
    component.end = extent.offset + (last - extent.position);
    if (const std::uint64_t round = piece.stripe_bytes * piece.targets.size(); round > 0) {
        component.shift_bytes = (piece.shift_bytes + extent.position % round + round - extent.offset % round) % round;
    }
    return component;
}

LayoutComponent make_unknown_component(std::uint64_t start, std::uint64_t end) {
    LayoutComponent component;
    component.pattern = Pattern::foreign;
    component.start = start;
    component.end = end;
    return component;
}

}  // namespace

std::optional<ExtentList> read_extents(const std::string& path, std::uint64_t size, std::size_t max_count) {
    const files::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (*file < 0 || is_on_realtime_device(*file)) {
        return std::nullopt;
    }
    alignas(struct fiemap) std::array<char, sizeof(struct fiemap) + extents_per_call * sizeof(fiemap_extent)> memory{};
    ExtentList result;
    for (std::uint64_t position = 0; position < size;) {
        struct fiemap request {};
        request.fm_start = position;
        request.fm_length = size - position;
        request.fm_extent_count = extents_per_call;
        std::memcpy(memory.data(), &request, sizeof request);
        if (::ioctl(*file, FS_IOC_FIEMAP, memory.data()) != 0) {
            return std::nullopt;
        }
        std::memcpy(&request, memory.data(), sizeof request);
        bool last = request.fm_mapped_extents == 0;
        for (std::uint32_t i = 0; i < std::min(request.fm_mapped_extents, extents_per_call); ++i) {
            fiemap_extent extent{};
            std::memcpy(&extent, memory.data() + sizeof request + i * sizeof extent, sizeof extent);
            last = last || (extent.fe_flags & FIEMAP_EXTENT_LAST) != 0;
            const std::uint64_t offset = extent.fe_logical, length = extent.fe_length;
            position = std::max(position, offset + length);
            if (offset >= size) {  // space that the file system reserves behind the end
                last = true;
                break;
            }
            if (result.extents.size() == max_count) {
                result.is_complete = false;
                return result;
            }
            constexpr std::uint32_t unplaced_flags =
                FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_ENCODED;
            const bool placed = (extent.fe_flags & unplaced_flags) == 0;
            result.extents.push_back({offset, extent.fe_physical, std::min(length, size - offset), placed});
        }
        if (last) {
            break;
        }
    }
    return result;
}

bool has_several_parts(const records::Volume& volume) {
    return volume.pieces.size() > 1 || (volume.pieces.size() == 1 && volume.pieces.front().stripe > 0);
}

StripeLayout make_local_layout(const records::Volume& volume, const ExtentList& extents) {
    StripeLayout layout;
    layout.kind = "local";
    layout.extents = summarize_extents(extents);
    std::vector<LayoutComponent> pieces;
    for (const records::VolumePiece& piece : volume.pieces) {
        pieces.push_back(make_component(volume, piece));
    }
    if (!has_several_parts(volume)) {
        layout.components = std::move(pieces);
        for (LayoutComponent& component : layout.components) {
            component.end = ~0ULL;  // of the file, whatever the size of the device
        }
        return layout;
    }
    std::uint64_t known_to = 0;
    bool cut = !extents.is_complete;
    for (const FileExtent& extent : extents.extents) {
        if (layout.components.size() >= max_components) {
            cut = true;
            break;
        }
        known_to = extent.offset + extent.length;
        if (!extent.has_position) {
            layout.components.push_back(make_unknown_component(extent.offset, known_to));
        }
        for (const LayoutComponent& piece : pieces) {
            if (auto component = extent.has_position ? intersect(piece, extent) : std::nullopt) {
                layout.components.push_back(std::move(*component));
            }
        }
    }
    if (cut) {
        layout.components.push_back(make_unknown_component(known_to, ~0ULL));
    }
    layout.volume_components = std::move(pieces);
    return layout;
}

std::shared_ptr<const records::Volume> find_volume(dev_t device) {
    static std::mutex cache_mutex;
    static std::map<dev_t, std::shared_ptr<const records::Volume>> cache;
    const std::lock_guard lock(cache_mutex);
    const auto [entry, inserted] = cache.try_emplace(device);
    if (inserted) {
        const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
        if (auto volume = records::read_volume(number, records::read_mapper_table)) {
            entry->second = std::make_shared<const records::Volume>(std::move(*volume));
        }
    }
    return entry->second;
}

std::optional<StripeLayout> read_local_layout(const std::string& path, std::size_t extent_limit) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return std::nullopt;
    }
    const auto volume = find_volume(status.st_dev);
    if (!volume) {
        return std::nullopt;
    }
    const auto extents = read_extents(path, static_cast<std::uint64_t>(status.st_size), extent_limit);
    return extents ? std::optional(make_local_layout(*volume, *extents)) : std::nullopt;
}

namespace {

std::optional<StripeLayout> query_local_layout(const std::string& path, std::uint32_t type_number) {
    constexpr std::uint32_t ext_type = 0xEF53, xfs_type = 0x58465342;
    return type_number == ext_type || type_number == xfs_type ? read_local_layout(path) : std::nullopt;
}

LayoutReader make_local_reader(const std::string& directory) {
    struct stat status {};
    const auto volume = ::stat(directory.c_str(), &status) == 0 ? find_volume(status.st_dev) : nullptr;
    if (!volume || !has_several_parts(*volume)) {
        return {};
    }
    // The first file on another device would make its volume be read while operations are timed.
    return [device = status.st_dev](const std::string& path) {
        constexpr std::size_t timed_extent_limit = 1024;
        struct stat file {};
        const bool same_device = ::stat(path.c_str(), &file) == 0 && file.st_dev == device;
        return same_device ? read_local_layout(path, timed_extent_limit) : std::nullopt;
    };
}

}  // namespace

extern const LayoutSystem local_system;
const LayoutSystem local_system{
    .types = {"xfs", "ext4", "ext3", "ext2"},
    .max_queries = 256,  // each fills the record
    .read_attribute = nullptr,
    .query = query_local_layout,
    .explain_missing = nullptr,
    .striping = nullptr,
    .readable_while_timed = true,
    .make_timed_reader = make_local_reader,
};

}  // namespace sonde::layouts
