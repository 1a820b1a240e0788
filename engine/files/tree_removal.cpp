// SPDX-License-Identifier: Apache-2.0
#include "files/tree_removal.hpp"

#include "files/descriptor.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace sonde::files {
namespace {

using Entries = std::unique_ptr<DIR, CloseDirectory>;

/// The next name that is neither "." nor ".."; null at the end.
const char* next_name(const Entries& entries) {
    while (const dirent* entry = ::readdir(entries.get())) {
        if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
            return entry->d_name;
        }
    }
    return nullptr;
}

Entries entries_of(int descriptor) {
    Entries entries(::fdopendir(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)));
    if (entries != nullptr) {
        ::rewinddir(entries.get());
    }
    return entries;
}

constexpr const char* foreign_files = " holds files that this run did not make: left alone";

}  // namespace

TreeSweep::TreeSweep(const Manifest& manifest, bool dry, Removal& removal) : dry_(dry), removal_(removal) {
    for (const TreeRule& rule : manifest.trees.rules) {
        if (rule.made) {
            namings_.emplace_back(rule, manifest.tasks);
        }
    }
}

bool TreeSweep::makes(const std::string& name) const {
    for (const TreeNaming& naming : namings_) {
        if (naming.is_top(name)) {
            return true;
        }
    }
    return false;
}

/// Opens a directory, lets `inside` empty it, and removes it. True when it is gone.
template <class Inside>
bool TreeSweep::remove_directory(int parent, const std::string& path, const std::string& name, Inside inside) {
    const Descriptor opened(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (*opened < 0) {
        if (errno == ENOENT) {
            return true;
        }
        leave(path + (errno == ENOTDIR || errno == ELOOP ? std::string(" is not a directory: left alone")
                                                         : std::string(" cannot be opened: ") + std::strerror(errno)));
        return false;
    }
    if (!inside(*opened)) {
        return false;
    }
    if (!dry_ && ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
        leave(path + " could not be removed: " + std::strerror(errno));
        return false;
    }
    ++removal_.directories;
    return true;
}

bool TreeSweep::top(int parent, const std::string& path, const std::string& name) {
    Namings namings;
    for (const TreeNaming& naming : namings_) {
        if (naming.is_top(name)) {
            namings.push_back(&naming);
        }
    }
    return remove_directory(parent, path, name, [&](int descriptor) { return inside_top(descriptor, path, namings); });
}

bool TreeSweep::inside_top(int descriptor, const std::string& path, const Namings& namings) {
    const Entries entries = entries_of(descriptor);
    bool empty = entries != nullptr;
    bool foreign = false;
    while (const char* found = empty || entries != nullptr ? next_name(entries) : nullptr) {
        const std::string name = found;
        std::string branch;
        for (const TreeNaming* naming : namings) {
            branch = branch.empty() ? naming->branch_of_root(name) : branch;
        }
        if (branch.empty()) {
            foreign = true;
            continue;
        }
        const std::string place = path + "/" + name;
        empty = remove_directory(descriptor, place, name,
                                 [&](int inside) { return tree(inside, place, namings, branch, 0); }) &&
                empty;
    }
    if (foreign) {
        leave(path + foreign_files);
    }
    return empty && !foreign;
}

bool TreeSweep::tree(int descriptor, const std::string& path, const Namings& namings, const std::string& branch,
                     std::uint64_t directory) {
    const Entries entries = entries_of(descriptor);
    if (entries == nullptr) {
        leave(path + " cannot be listed: " + std::strerror(errno));
        return false;
    }
    bool empty = true;
    bool foreign = false;
    while (const char* name = next_name(entries)) {
        empty = entry(descriptor, path, name, namings, branch, directory, foreign) && empty;
    }
    if (foreign) {
        leave(path + foreign_files);
    }
    return empty && !foreign;
}

bool TreeSweep::entry(int descriptor, const std::string& path, const std::string& name, const Namings& namings,
                      const std::string& branch, std::uint64_t directory, bool& foreign) {
    for (const TreeNaming* naming : namings) {
        switch (naming->item(directory, name)) {
            case TreeNaming::Kind::file:
                return file(descriptor, path, name);
            case TreeNaming::Kind::directory:
                // Items are empty: what somebody has put into one keeps it.
                return remove_directory(descriptor, path + "/" + name, name, [&](int inside) {
                    const Entries within = entries_of(inside);
                    const bool empty = within != nullptr && next_name(within) == nullptr;
                    if (!empty) {
                        leave(path + "/" + name + foreign_files);
                    }
                    return empty;
                });
            case TreeNaming::Kind::none:
                break;
        }
        if (const auto number = naming->subdirectory(branch, directory, name)) {
            return remove_directory(descriptor, path + "/" + name, name, [&](int inside) {
                return tree(inside, path + "/" + name, namings, branch, *number);
            });
        }
    }
    foreign = true;
    return false;
}

bool TreeSweep::file(int descriptor, const std::string& path, const std::string& name) {
    struct stat info {};
    if (::fstatat(descriptor, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT;
    }
    if (!S_ISREG(info.st_mode)) {
        leave(path + "/" + name + " is not a regular file: left alone");
        return false;
    }
    if (!dry_ && ::unlinkat(descriptor, name.c_str(), 0) != 0 && errno != ENOENT) {
        leave(path + "/" + name + " could not be removed: " + std::strerror(errno));
        return false;
    }
    ++removal_.files;
    removal_.bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
    return true;
}

Removal remove_trees(const std::string& directory, const Manifest& manifest, bool dry) {
    Removal removal;
    const Descriptor root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (*root < 0) {
        removal.left.push_back(directory + " cannot be opened: " + std::strerror(errno));
        return removal;
    }
    TreeSweep sweep(manifest, dry, removal);
    std::vector<std::string> tops;
    {
        const Entries entries = entries_of(*root);
        while (const char* name = entries != nullptr ? next_name(entries) : nullptr) {
            if (sweep.makes(name)) {
                tops.emplace_back(name);
            }
        }
    }
    for (const std::string& name : tops) {
        sweep.top(*root, directory + "/" + name, name);
    }
    return removal;
}

std::uint64_t remove_items(const std::string& directory, const Manifest& manifest, int first, int last) {
    std::uint64_t removed = 0;
    for (const TreeState& state : manifest.trees.states) {
        const auto& rules = manifest.trees.rules;
        const auto rule = std::find_if(rules.begin(), rules.end(),
                                       [&state](const TreeRule& one) { return one.tree.top == state.top && one.made; });
        if (rule == rules.end()) {
            continue;
        }
        plan::Meta meta;
        meta.tree = rule->tree;
        meta.names = rule->names;
        meta.objects = state.objects;
        meta.shared_single = rule->shared_single;
        const patterns::TreeShape shape(meta.tree);
        const bool files = state.objects == plan::Objects::files;
        for (int task = first; task < last; ++task) {
            const std::string branch = branch_of(meta, task, manifest.tasks);
            const std::string stem = patterns::item_stem(meta, task);
            const std::uint64_t items = std::min(shape.items(), state.items[static_cast<std::size_t>(task)]);
            for (std::uint64_t k = 0; k < items; ++k) {
                const patterns::TreeShape::Place place = shape.place(k);
                std::string path = directory + "/";
                shape.append_path(path, branch, place.copy, place.directory);
                path += "/" + stem + std::to_string(place.number);
                removed += (files ? ::unlink(path.c_str()) : ::rmdir(path.c_str())) == 0 && files ? 1U : 0U;
            }
        }
    }
    return removed;
}

}  // namespace sonde::files
