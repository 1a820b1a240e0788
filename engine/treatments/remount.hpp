// SPDX-License-Identifier: Apache-2.0
// The treatment `remount`: unmounts a file system and mounts it again, which empties its caches on this node.
#pragma once

#include <string>

namespace sonde::treatments {

struct RemountResult {
    bool done = false;
    std::string text;  ///< one sentence: the action, or the reason of a failure and a remedy
};

/// Remounts the file system of `directory` with its options. Requires root and a separate mount point (no root, bind
/// mount, memory or FUSE file system) that no other process uses; never forces the umount. `stop` is not polled between
/// umount and mount, so that the file system does not stay unmounted.
RemountResult remount(const std::string& directory);

}  // namespace sonde::treatments
