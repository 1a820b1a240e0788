// SPDX-License-Identifier: Apache-2.0
#include "files/removal_steps.hpp"

#include <sys/stat.h>
#include <cerrno>
#include <cstring>

namespace sonde::files {

bool remove_regular_file(const ConfinedDirectory& parent, const std::string& name, bool is_dry_run, Removal& removal) {
    const auto leave = [&](const std::string& reason) {
        removal.remaining.push_back(parent.path() + "/" + name + reason);
    };
    struct stat info {};
    if (const int failed = parent.status(name, info); failed != 0) {
        // A failed server hides its files: a directory may then look empty although it is not.
        if (failed != -ENOENT && failed != -ENOTDIR) {
            leave(std::string(" cannot be looked at: ") + std::strerror(-failed));
        }
        return failed == -ENOENT;
    }
    if (!S_ISREG(info.st_mode)) {
        leave(" is not a regular file: left alone");
        return false;
    }
    if (const int failed = is_dry_run ? 0 : parent.unlink(name); failed != 0 && failed != -ENOENT) {
        leave(std::string(" could not be removed: ") + std::strerror(-failed));
        return false;
    }
    ++removal.files;
    removal.bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
    return true;
}

std::string unopened_text(const ConfinedDirectory& directory) {
    return directory.path() + (directory.error() == ENOTDIR || directory.error() == ELOOP
                                   ? std::string(" is not a directory: left alone")
                                   : std::string(" cannot be opened: ") + std::strerror(directory.error()));
}

bool remove_emptied(const ConfinedDirectory& parent, const ConfinedDirectory& child, bool is_dry_run,
                    Removal& removal) {
    const int failed = is_dry_run ? 0 : parent.remove_directory(child);
    // ENOENT: removed by another process, or moved away with what is in it.
    const bool moved = failed == -ENOENT && !child.is_removed();
    if (failed == ConfinedDirectory::replaced || moved) {
        removal.remaining.push_back(
            child.path() +
            " could not be removed: it was moved or replaced while its files were being removed; "
            "what has its name now is left alone");
        return false;
    }
    if (failed != 0 && failed != -ENOENT) {
        removal.remaining.push_back(child.path() + " could not be removed: " + std::strerror(-failed));
        return false;
    }
    ++removal.directories;
    return true;
}

}  // namespace sonde::files
