// SPDX-License-Identifier: Apache-2.0
// The disks (NSDs) of a GPFS file system that hold data, and who serves each: from `mmlsdisk -Y` and `mmlsnsd -Y`.
// GPFS reports the disk of a block to no user; gpfs.hpp reads the pool of a file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::layouts {

struct GpfsDisks {
    /// By storage pool: "nsd1@ec01,ec02" with the servers in the order in which clients ask them, "nsd1" of a disk
    /// whose servers are not known or that every node reaches itself. In the order of the file system.
    std::map<std::string, std::vector<std::string>> disks_of_pool;
    std::string why_unknown;     ///< a sentence on why `disks_of_pool` is empty
    std::string why_no_servers;  ///< the same where disks are known and servers are not
};

/// From what both programs print with -Y: fields between colons, named by the line HEADER, whichever these are in that
/// version; of colons in a name "%3A" stands. Disks for metadata alone are left out. Without a disk `why_unknown` says
/// that the text is of another form.
GpfsDisks parse_gpfs_disks(std::string_view mmlsdisk, std::string_view mmlsnsd);

/// Asks the programs about the file system with this device ("/dev/fs1", "fs1"). `mmlsdisk` answers everybody,
/// `mmlsnsd` root.
GpfsDisks query_gpfs_disks(const std::string& device);

/// A sentence on the facts about a file in `pool` that are unknown, with the reason.
std::string explain_unknown_disk(const std::string& pool, const GpfsDisks& disks);

/// Output of a GPFS program, which is searched in PATH and in GPFS's own folder, which is seldom in PATH.
struct GpfsOutput {
    bool ok = false;
    bool timed_out = false;  ///< it did not answer in time
    std::string text;        ///< what it printed, or why it failed
};
GpfsOutput run_gpfs_program(const std::vector<std::string>& command);

}  // namespace sonde::layouts
