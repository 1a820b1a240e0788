// SPDX-License-Identifier: Apache-2.0
// Knows FIEMAP (filesystems/fiemap.rst of the kernel's Documentation).
#include "files/local_layout.hpp"

#include "files/descriptor.hpp"

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

namespace sonde::files {
namespace {

using Pattern = LayoutComponent::Pattern;

constexpr std::uint32_t extents_at_once = 128;
// Components of one file: what lies behind them is of no known drive.
constexpr std::size_t most_components = 4096;

/// On the real-time device of XFS places are of another device than that of the file system.
bool elsewhere(int descriptor) {
    struct fsxattr attributes {};
    return ::ioctl(descriptor, FS_IOC_FSGETXATTR, &attributes) == 0 && (attributes.fsx_xflags & FS_XFLAG_REALTIME) != 0;
}

LayoutComponent of_piece(const records::Volume& volume, const records::VolumePiece& piece) {
    LayoutComponent component;
    component.start = piece.start;
    component.end = piece.end;
    component.count = static_cast<std::uint32_t>(piece.drives.size());
    if (piece.drives.size() > 1 && piece.stripe == 0) {
        component.pattern = Pattern::whole;
        component.targets = {volume.name};
        component.members = piece.drives;
        component.count = 1;
        return component;
    }
    component.pattern = piece.stripe > 0 ? Pattern::raid0 : Pattern::whole;
    component.stripe = piece.stripe;
    component.shift = piece.shift;
    component.targets = piece.drives;
    return component;
}

FileExtents summary_of(const ExtentsOfFile& extents) {
    FileExtents sum;
    sum.extents = extents.extents.size();
    sum.all = extents.all;
    std::uint64_t length = 0;
    const PlacedExtent* before = nullptr;
    for (const PlacedExtent& extent : extents.extents) {
        if (!extent.placed) {
            sum.unplaced_bytes += extent.length;
            before = nullptr;
            continue;
        }
        const bool follows = before != nullptr && before->offset + before->length == extent.offset &&
                             before->place + before->length == extent.place;
        sum.fragments += follows ? 0 : 1;
        length = (follows ? length : 0) + extent.length;
        sum.longest_bytes = std::max(sum.longest_bytes, length);
        before = &extent;
    }
    return sum;
}

/// The part of an extent that lies in a piece of the volume, as a component of the file.
std::optional<LayoutComponent> inside(const LayoutComponent& piece, const PlacedExtent& extent) {
    const std::uint64_t first = std::max(extent.place, piece.start);
    const std::uint64_t last = std::min(extent.place + extent.length, piece.end);
    if (first >= last) {
        return std::nullopt;
    }
    LayoutComponent component = piece;
    component.start = extent.offset + (first - extent.place);
    component.end = extent.offset + (last - extent.place);
    if (const std::uint64_t turn = piece.stripe * piece.targets.size(); turn > 0) {
        component.shift = (piece.shift + extent.place % turn + turn - extent.offset % turn) % turn;
    }
    return component;
}

LayoutComponent nowhere(std::uint64_t start, std::uint64_t end) {
    LayoutComponent component;
    component.pattern = Pattern::foreign;
    component.start = start;
    component.end = end;
    return component;
}

}  // namespace

std::optional<ExtentsOfFile> extents_of(const std::string& path, std::uint64_t size, std::size_t most) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (*file < 0 || elsewhere(*file)) {
        return std::nullopt;
    }
    alignas(struct fiemap) std::array<char, sizeof(struct fiemap) + extents_at_once * sizeof(fiemap_extent)> memory{};
    ExtentsOfFile result;
    for (std::uint64_t position = 0; position < size;) {
        struct fiemap request {};
        request.fm_start = position;
        request.fm_length = size - position;
        request.fm_extent_count = extents_at_once;
        std::memcpy(memory.data(), &request, sizeof request);
        if (::ioctl(*file, FS_IOC_FIEMAP, memory.data()) != 0) {
            return std::nullopt;
        }
        std::memcpy(&request, memory.data(), sizeof request);
        bool last = request.fm_mapped_extents == 0;
        for (std::uint32_t i = 0; i < std::min(request.fm_mapped_extents, extents_at_once); ++i) {
            fiemap_extent extent{};
            std::memcpy(&extent, memory.data() + sizeof request + i * sizeof extent, sizeof extent);
            last = last || (extent.fe_flags & FIEMAP_EXTENT_LAST) != 0;
            const std::uint64_t offset = extent.fe_logical, length = extent.fe_length;
            position = std::max(position, offset + length);
            if (offset >= size) {  // room that the file system keeps behind the end
                last = true;
                break;
            }
            if (result.extents.size() == most) {
                result.all = false;
                return result;
            }
            constexpr std::uint32_t no_place =
                FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_ENCODED;
            const bool placed = (extent.fe_flags & no_place) == 0;
            result.extents.push_back({offset, extent.fe_physical, std::min(length, size - offset), placed});
        }
        if (last) {
            break;
        }
    }
    return result;
}

bool divided(const records::Volume& volume) {
    return volume.pieces.size() > 1 || (volume.pieces.size() == 1 && volume.pieces.front().stripe > 0);
}

StripeLayout local_layout(const records::Volume& volume, const ExtentsOfFile& extents) {
    StripeLayout layout;
    layout.kind = "local";
    layout.extents = summary_of(extents);
    std::vector<LayoutComponent> pieces;
    for (const records::VolumePiece& piece : volume.pieces) {
        pieces.push_back(of_piece(volume, piece));
    }
    if (!divided(volume)) {
        layout.components = std::move(pieces);
        for (LayoutComponent& component : layout.components) {
            component.end = ~0ULL;  // of the file, whatever the size of the device
        }
        return layout;
    }
    std::uint64_t known_to = 0;
    bool cut = !extents.all;
    for (const PlacedExtent& extent : extents.extents) {
        if (layout.components.size() >= most_components) {
            cut = true;
            break;
        }
        known_to = extent.offset + extent.length;
        if (!extent.placed) {
            layout.components.push_back(nowhere(extent.offset, known_to));
        }
        for (const LayoutComponent& piece : pieces) {
            if (auto component = extent.placed ? inside(piece, extent) : std::nullopt) {
                layout.components.push_back(std::move(*component));
            }
        }
    }
    if (cut) {
        layout.components.push_back(nowhere(known_to, ~0ULL));
    }
    layout.volume = std::move(pieces);
    return layout;
}

std::shared_ptr<const records::Volume> volume_below(dev_t device) {
    static std::mutex one_at_a_time;
    static std::map<dev_t, std::shared_ptr<const records::Volume>> cache;
    const std::lock_guard lock(one_at_a_time);
    const auto [place, fresh] = cache.try_emplace(device);
    if (fresh) {
        const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
        if (auto volume = records::read_volume(number, records::read_mapper_table)) {
            place->second = std::make_shared<const records::Volume>(std::move(*volume));
        }
    }
    return place->second;
}

std::optional<StripeLayout> layout_on_drives(const std::string& path, std::size_t most) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return std::nullopt;
    }
    const auto volume = volume_below(status.st_dev);
    if (!volume) {
        return std::nullopt;
    }
    const auto extents = extents_of(path, static_cast<std::uint64_t>(status.st_size), most);
    return extents ? std::optional(local_layout(*volume, *extents)) : std::nullopt;
}

}  // namespace sonde::files
