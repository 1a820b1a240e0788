// SPDX-License-Identifier: Apache-2.0
// Uses statvfs(3), statx(2) and a list of network file systems.
#include "records/file_system.hpp"

#include "records/mounts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <string_view>

namespace sonde::records {

namespace {

using namespace std::string_view_literals;

/// Network, parallel and cluster file systems; FUSE types are named fuse.<these>.
constexpr std::array network_types{
    "9p"sv,    "acfs"sv,     "afs"sv,      "beegfs"sv,  "ceph"sv,     "cifs"sv,   "coda"sv,      "cvfs"sv,
    "cvmfs"sv, "daos"sv,     "dfuse"sv,    "dvs"sv,     "fhgfs"sv,    "gfs2"sv,   "glusterfs"sv, "gpfs"sv,
    "hdfs"sv,  "juicefs"sv,  "lizardfs"sv, "lustre"sv,  "mfs"sv,      "mmfs"sv,   "nfs"sv,       "nfs4"sv,
    "ocfs2"sv, "orangefs"sv, "panfs"sv,    "pvfs2"sv,   "quobyte"sv,  "rclone"sv, "s3fs"sv,      "saunafs"sv,
    "smb3"sv,  "smbfs"sv,    "sshfs"sv,    "unifyfs"sv, "virtiofs"sv, "wekafs"sv, "xtreemfs"sv};

bool is_network_type(std::string_view type) {
    constexpr std::string_view fuse = "fuse.";
    if (type.substr(0, fuse.size()) == fuse) {
        type.remove_prefix(fuse.size());
        // "fuse.quobyte@host/volume", "fuse.mfs-client": only the prefix counts.
        type = type.substr(0, type.find_first_of("@-"));
    }
    return std::find(network_types.begin(), network_types.end(), type) != network_types.end();
}

/// Only a regular file reports the alignment of direct I/O, so an unnamed temporary file is used.
ExtendedStatus read_direct_alignment(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
        return read_extended_status(AT_FDCWD, path);
    }
    const int descriptor = ::open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        return {};
    }
    const ExtendedStatus extended = read_extended_status(descriptor, "");
    ::close(descriptor);
    return extended;
}

}  // namespace

FileSystem describe_file_system(const std::string& path) {
    FileSystem system;
    if (auto mount = find_mount(path)) {
        system.type = std::move(mount->type);
        system.mount_point = std::move(mount->point);
        system.source = std::move(mount->source);
        system.options = std::move(mount->options);
        system.root = std::move(mount->root);
        system.device = std::move(mount->device);
        system.read_only = mount->read_only;
    }
    struct statvfs status {};
    if (::statvfs(path.c_str(), &status) == 0) {
        system.block_bytes = status.f_frsize != 0 ? status.f_frsize : status.f_bsize;
        system.total_bytes = status.f_blocks * system.block_bytes;
        system.free_bytes = status.f_bfree * system.block_bytes;
        system.available_bytes = status.f_bavail * system.block_bytes;
        system.inodes_total = status.f_files;
        system.inodes_free = status.f_ffree;
        system.read_only = system.read_only || (status.f_flag & ST_RDONLY) != 0;
    }
    const MountStripes stripes = parse_mount_stripes(system.type, system.options, system.block_bytes);
    system.stripe_unit_bytes = stripes.unit_bytes;
    system.stripe_width_bytes = stripes.width_bytes;
    struct stat entry {};
    if (::stat(path.c_str(), &entry) == 0) {
        system.preferred_io_bytes = static_cast<std::uint64_t>(entry.st_blksize);
    }
    const ExtendedStatus direct = read_direct_alignment(path);
    system.direct_memory_align = direct.direct_memory_align;
    system.direct_offset_align = direct.direct_offset_align;
    system.network = is_network_type(system.type);
    system.memory_backed = system.type == "tmpfs" || system.type == "ramfs";
    return system;
}

}  // namespace sonde::records
