// SPDX-License-Identifier: Apache-2.0
#include "files/removal.hpp"

#include "files/file_map.hpp"
#include "files/tree_removal.hpp"

#include <sys/stat.h>
#include <cerrno>
#include <cstring>

namespace sonde::files {

Removal remove_files(const std::string& directory, const Manifest& manifest, int first, int last) {
    Removal removal;
    if (!manifest.has_data) {
        return removal;
    }
    const FileMap map(directory, manifest.files, manifest.tasks);
    FileDirectories directories(map);
    for (int task = first; task < last; ++task) {
        if (!map.is_first_task_of_file(task)) {
            continue;
        }
        const ConfinedDirectory& parent = directories.directory_of(task);
        if (!parent) {
            // remove_run() names links and files that have taken a directory's place.
            if (parent.error() != ENOENT && parent.error() != ENOTDIR && parent.error() != ELOOP) {
                removal.remaining.push_back(unopened_text(parent));
            }
            continue;
        }
        for (int k = 0; k < map.files_per_task(); ++k) {
            remove_regular_file(parent, map.file_name(task, k), false, removal);
        }
    }
    return removal;
}

namespace {

/// Removes the plan's files from one directory.
class DirectorySweep {
 public:
    DirectorySweep(const FileMap& map, const Manifest& manifest, bool is_dry_run, Removal& removal)
        : map_(map), trees_(manifest, is_dry_run, removal), is_dry_run_(is_dry_run), removal_(removal) {}

    /// `folder`: name below the root, empty for the root itself. Returns true if at most the manifest is left in it.
    bool remove_from_directory(const ConfinedDirectory& open, const std::string& folder) {
        Listing entries = open.list();
        if (entries.error() != 0) {
            removal_.remaining.push_back(open.path() + " cannot be listed: " + std::strerror(entries.error()));
            return false;
        }
        bool empty = true;
        bool foreign = false;
        while (const char* entry = entries.next()) {
            const std::string name = entry;
            if (folder.empty() && (name == manifest_name || name == manifest_draft_name)) {
                continue;
            }
            if (map_.contains_file(folder, name)) {
                empty = remove_regular_file(open, name, is_dry_run_, removal_) && empty;
            } else if (folder.empty() && map_.contains_folder(name)) {
                empty = remove_from_subfolder(open, name) && empty;
            } else if (folder.empty() && trees_.is_top(name)) {
                empty = trees_.remove_top(open, name) && empty;
            } else {
                foreign = true;
            }
        }
        if (foreign) {
            removal_.remaining.push_back(open.path() + " holds files that this run did not make: left alone");
        }
        return empty && !foreign;
    }

 private:
    bool remove_from_subfolder(const ConfinedDirectory& parent, const std::string& name) {
        const ConfinedDirectory inside = parent.open_subdirectory(name);
        if (!inside) {
            removal_.remaining.push_back(unopened_text(inside));
            return false;
        }
        return remove_from_directory(inside, name) && remove_emptied(parent, inside, is_dry_run_, removal_);
    }

    const FileMap& map_;
    TreeSweep trees_;
    bool is_dry_run_;
    Removal& removal_;
};

/// Removes what a run has put into a directory of another target. True when nothing is left of it.
bool remove_from_other_target(const FileMap& map, const Manifest& manifest, const ConfinedDirectory& directory,
                              bool is_dry_run, Removal& removal) {
    if (!directory) {
        if (directory.error() != ENOENT) {
            removal.remaining.push_back(unopened_text(directory));
        }
        return directory.error() == ENOENT;  // the run was ended before it made it
    }
    if (!directory.is_made_by_caller()) {
        struct stat info {};
        directory.status(info);
        removal.remaining.push_back(directory.path() + " belongs to " + user_text(info.st_uid) + ": left alone");
        return false;
    }
    return DirectorySweep(map, manifest, is_dry_run, removal).remove_from_directory(directory, "") &&
           remove_emptied(directory.open_parent(), directory, is_dry_run, removal);
}

}  // namespace

Removal remove_run(const RunDirectories& directories, const Manifest& manifest, bool is_dry_run) {
    Removal removal;
    const ConfinedDirectory& root = directories.root;
    if (!root) {
        removal.remaining.push_back(root.error() == ENOENT
                                        ? root.path() + " is not there any more: what was in it could not be removed"
                                        : unopened_text(root));
        return removal;
    }
    const FileMap map(root.path(), manifest.files, manifest.tasks);
    bool is_removed = true;
    for (const ConfinedDirectory& directory : directories.other_targets) {
        is_removed = remove_from_other_target(map, manifest, directory, is_dry_run, removal) && is_removed;
    }
    if (!DirectorySweep(map, manifest, is_dry_run, removal).remove_from_directory(root, "") || !is_removed) {
        return removal;
    }
    if (is_dry_run) {
        ++removal.directories;
        return removal;
    }
    // It holds the manifest, so this fails: as it should, or because a server is away, which may hide files, or because
    // the directory was replaced.
    const ConfinedDirectory parent = root.open_parent();
    const int refused = parent ? parent.remove_directory(root) : -parent.error();
    if (refused != 0 && refused != -ENOTEMPTY && refused != -EEXIST) {
        remove_emptied(parent, root, false, removal);
        return removal;
    }
    // The manifest goes last: until then a second attempt still knows what to remove.
    root.unlink(manifest_draft_name);
    root.unlink(manifest_name);
    if (refused == 0) {
        ++removal.directories;
    } else {
        remove_emptied(parent, root, false, removal);
    }
    return removal;
}

}  // namespace sonde::files
