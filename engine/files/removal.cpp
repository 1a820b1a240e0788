// SPDX-License-Identifier: Apache-2.0
#include "files/removal.hpp"

#include "files/descriptor.hpp"
#include "files/file_map.hpp"
#include "files/tree_removal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <memory>

namespace sonde::files {

Removal remove_files(const std::string& directory, const Manifest& manifest, int first, int last, bool dry) {
    Removal removal;
    if (!manifest.has_data) {
        return removal;
    }
    const FileMap map(directory, manifest.files, manifest.tasks);
    for (int task = first; task < last; ++task) {
        if (!map.first_of_file(task)) {
            continue;
        }
        for (int k = 0; k < map.files_per_task(); ++k) {
            const std::string path = map.path(task, k);
            struct stat info {};
            if (::lstat(path.c_str(), &info) != 0) {
                // A server that is gone hides its files: a directory may look empty then, and is not.
                if (errno != ENOENT && errno != ENOTDIR) {
                    removal.left.push_back(path + " cannot be looked at: " + std::strerror(errno));
                }
                continue;
            }
            if (!S_ISREG(info.st_mode)) {
                removal.left.push_back(path + " is not a regular file: left alone");
                continue;
            }
            if (!dry && ::unlink(path.c_str()) != 0) {
                removal.left.push_back(path + " could not be removed: " + std::strerror(errno));
                continue;
            }
            ++removal.files;
            removal.bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
        }
    }
    return removal;
}

namespace {

/// Removes the plan's files from one directory, which is held open, so that nothing that happens to its path leads
/// elsewhere.
class Sweep {
 public:
    Sweep(const FileMap& map, const Manifest& manifest, bool dry, Removal& removal)
        : map_(map), trees_(manifest, dry, removal), dry_(dry), removal_(removal) {}

    /// `folder`: name below the root, empty for the root itself. True when nothing but the manifest is left in it.
    bool directory(int descriptor, const std::string& path, const std::string& folder) {
        const std::unique_ptr<DIR, CloseDirectory> entries(::fdopendir(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)));
        if (entries == nullptr) {
            removal_.left.push_back(path + " cannot be listed: " + std::strerror(errno));
            return false;
        }
        bool empty = true;
        bool foreign = false;
        ::rewinddir(entries.get());
        while (const dirent* entry = ::readdir(entries.get())) {
            const std::string name = entry->d_name;
            if (name == "." || name == ".." || (folder.empty() && (name == manifest_name || name == draft_name()))) {
                continue;
            }
            if (map_.makes_file(folder, name)) {
                empty = file(descriptor, path + "/" + name, name) && empty;
            } else if (folder.empty() && map_.makes_folder(name)) {
                empty = subfolder(descriptor, path + "/" + name, name) && empty;
            } else if (folder.empty() && trees_.makes(name)) {
                empty = trees_.top(descriptor, path + "/" + name, name) && empty;
            } else {
                foreign = true;
            }
        }
        if (foreign) {
            removal_.left.push_back(path + " holds files that this run did not make: left alone");
        }
        return empty && !foreign;
    }

    static std::string draft_name() { return std::string(manifest_name) + ".new"; }

 private:
    bool file(int parent, const std::string& path, const std::string& name) {
        struct stat info {};
        if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
            return errno == ENOENT;
        }
        if (!S_ISREG(info.st_mode)) {
            removal_.left.push_back(path + " is not a regular file: left alone");
            return false;
        }
        if (!dry_ && ::unlinkat(parent, name.c_str(), 0) != 0 && errno != ENOENT) {
            removal_.left.push_back(path + " could not be removed: " + std::strerror(errno));
            return false;
        }
        ++removal_.files;
        removal_.bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
        return true;
    }

    bool subfolder(int parent, const std::string& path, const std::string& name) {
        const Descriptor inside(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (*inside < 0) {
            removal_.left.push_back(path + (errno == ENOTDIR || errno == ELOOP
                                                ? std::string(" is not a directory: left alone")
                                                : std::string(" cannot be opened: ") + std::strerror(errno)));
            return false;
        }
        if (!directory(*inside, path, name)) {
            return false;
        }
        if (!dry_ && ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
            removal_.left.push_back(path + " could not be removed: " + std::strerror(errno));
            return false;
        }
        ++removal_.directories;
        return true;
    }

    const FileMap& map_;
    TreeSweep trees_;
    bool dry_;
    Removal& removal_;
};

/// Removes what a run has put into a directory of another target. True when nothing is left of it.
bool remove_beside(const FileMap& map, const Manifest& manifest, const std::string& path, bool dry, Removal& removal) {
    const Descriptor root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (*root < 0) {
        if (errno != ENOENT) {
            removal.left.push_back(path + " cannot be opened: " + std::strerror(errno));
        }
        return errno == ENOENT;  // the run was ended before it made it
    }
    if (!Sweep(map, manifest, dry, removal).directory(*root, path, "")) {
        return false;
    }
    if (!dry && ::rmdir(path.c_str()) != 0 && errno != ENOENT) {
        removal.left.push_back(path + " could not be removed: " + std::strerror(errno));
        return false;
    }
    ++removal.directories;
    return true;
}

}  // namespace

Removal remove_run(const std::string& directory, const Manifest& manifest, bool dry) {
    Removal removal;
    const Descriptor root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (*root < 0) {
        removal.left.push_back(directory + (errno == ENOENT
                                                ? std::string(" is not there any more: what was in it could "
                                                              "not be removed")
                                                : " cannot be opened: " + std::string(std::strerror(errno))));
        return removal;
    }
    const FileMap map(directory, manifest.files, manifest.tasks);
    bool gone = true;
    for (std::size_t i = 1; i < map.roots().size(); ++i) {
        gone = remove_beside(map, manifest, map.roots()[i], dry, removal) && gone;
    }
    if (!Sweep(map, manifest, dry, removal).directory(*root, directory, "") || !gone) {
        return removal;
    }
    // It holds the manifest, so this fails: as it should, or because a server is away, which may hide files.
    if (!dry && ::rmdir(directory.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT) {
        removal.left.push_back(directory + " could not be removed: " + std::strerror(errno));
        return removal;
    }
    if (!dry) {
        // The manifest goes last: until then a second attempt still knows what to remove.
        ::unlinkat(*root, Sweep::draft_name().c_str(), 0);
        ::unlinkat(*root, manifest_name, 0);
        if (::rmdir(directory.c_str()) != 0 && errno != ENOENT) {
            removal.left.push_back(directory + " could not be removed: " + std::strerror(errno));
            return removal;
        }
    }
    ++removal.directories;
    return removal;
}

}  // namespace sonde::files
