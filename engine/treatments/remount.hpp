// SPDX-License-Identifier: Apache-2.0
// Unmounts a file system and mounts it again: the surest way to empty its caches on this node.
#pragma once

#include <string>

namespace sonde::treatments {

struct RemountResult {
    bool done = false;
    std::string text;  ///< one sentence: what was done, or why not and what would help
};

/// Remounts the file system that holds `directory` with its own options. Only as root, only a mount point of its own
/// (no root, bind mount, memory or FUSE file system), and only when nobody else uses it: never by force. Nobody is
/// asked to stop between umount and mount, so that the file system is never left unmounted on purpose.
RemountResult remount(const std::string& directory);

}  // namespace sonde::treatments
