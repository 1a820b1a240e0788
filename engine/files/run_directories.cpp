// SPDX-License-Identifier: Apache-2.0
#include "files/run_directories.hpp"

#include <utility>

namespace sonde::files {

RunDirectories open_run_directories(ConfinedDirectory root, const plan::Files& files) {
    RunDirectories all;
    // Not of the path by which the user named it, which may end in "." or be a link.
    const std::string name = root.name();
    if (!name.empty()) {
        const std::vector<std::string> roots = list_root_directories("/" + name, files);
        for (std::size_t i = 1; i < roots.size(); ++i) {
            all.other_targets.push_back(ConfinedDirectory::open_made(roots[i]));
        }
    }
    all.root = std::move(root);
    return all;
}

const ConfinedDirectory& FileDirectories::directory_of(int task) {
    const std::string& path = map_.get_root_directory(task);
    const auto [root, is_new] = roots_.try_emplace(path);
    if (is_new) {
        root->second = ConfinedDirectory::open_made(path);
    }
    const std::string folder = map_.get_file_folder(task);
    if (folder.empty()) {
        return root->second;
    }
    const std::string folder_path = path + "/" + folder;
    if (folder_path != folder_path_) {
        folder_ = root->second.open_subdirectory(folder);
        folder_path_ = folder_path;
    }
    return folder_;
}

const ConfinedDirectory& LastSubdirectory::open_subdirectory(const std::string& relative) {
    if (relative.empty()) {
        return root_;
    }
    if (relative != relative_) {
        last_ = root_.open_subdirectory(relative);
        relative_ = relative;
    }
    return last_;
}

const ConfinedDirectory& LastSubdirectory::open_parent_directory(const std::string& relative) {
    const std::size_t slash = relative.rfind('/');
    return open_subdirectory(slash == std::string::npos ? std::string() : relative.substr(0, slash));
}

int LastSubdirectory::status(const std::string& relative, struct stat& into) {
    return open_parent_directory(relative).status(relative.substr(relative.rfind('/') + 1), into);
}

int LastSubdirectory::make_directory(const std::string& relative, mode_t mode) {
    return open_parent_directory(relative).make_directory(relative.substr(relative.rfind('/') + 1), mode);
}

}  // namespace sonde::files
