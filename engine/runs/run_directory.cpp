// SPDX-License-Identifier: Apache-2.0
#include "runs/run_directory.hpp"

#include "files/manifest.hpp"
#include "records/text.hpp"
#include "runs/target_checks.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sonde::runs {
namespace {

constexpr mode_t run_directory_mode = 0755;  // less the umask: `clean` trusts no directory that others can write to

/// Opens a directory that this run has just made, unless another user has put one in its place meanwhile.
files::ConfinedDirectory open_new_directory(const files::ConfinedDirectory& target, const std::string& name) {
    files::ConfinedDirectory directory = target.open_entry(name);
    if (!directory.is_made_by_caller()) {
        throw EnvironmentError("the run directory " + directory.path() +
                               " was replaced by another user as soon as it was made: name a target that only you can "
                               "write to");
    }
    return directory;
}

/// Whether a manifest in a directory that was there before shows that a run of the caller has made the directory.
/// Throws EnvironmentError when that run is still active.
bool was_made_by_run(const files::ConfinedDirectory& directory) {
    try {
        const std::optional<files::Manifest> before = files::Manifest::load(directory, files::Trust::caller);
        if (before && before->check_writer_liveness() == files::WriterState::alive) {
            throw EnvironmentError(directory.path() + " is in use by the run " + before->run_id + " (process " +
                                   std::to_string(before->pid) + "): wait for it or choose another target.directory");
        }
        return before && !before->directory_existed_before;
    } catch (const files::UntrustedManifestError& ignored) {
        records::print_error(ignored.what());
        return false;
    }
}

/// Makes the run's directory in another target (plan::Files::across).
files::ConfinedDirectory make_root(const std::string& path, bool may_exist) {
    const std::size_t slash = path.rfind('/');
    const std::string name = path.substr(slash + 1);
    const files::ConfinedDirectory parent = files::ConfinedDirectory::open(path.substr(0, slash + 1));
    const int failed = parent ? parent.make_directory(name, run_directory_mode) : -parent.error();
    if (failed != 0 && !(failed == -EEXIST && may_exist)) {
        throw EnvironmentError("cannot make " + path + ": " + std::strerror(-failed));
    }
    return open_new_directory(parent, name);
}

}  // namespace

RunDirectory make_run_directory(const plan::Plan& plan, const std::string& run_id) {
    const std::string name = plan.target.directory.empty() ? "sonde-" + run_id : plan.target.directory;
    const std::string path = (plan.target.path == "/" ? "" : plan.target.path) + "/" + name;
    const std::vector<std::string> roots = files::list_root_directories(path, plan.data.files);
    for (std::size_t i = 1; i < roots.size(); ++i) {
        struct stat info {};
        if (::lstat(roots[i].c_str(), &info) == 0) {  // entries in it could not be recognized as ours
            throw EnvironmentError(roots[i] + " already exists: choose another target.directory");
        }
    }
    const files::ConfinedDirectory target = files::ConfinedDirectory::open(plan.target.path);
    const int failed = target ? target.make_directory(name, run_directory_mode) : -target.error();
    if (failed == 0) {
        return {open_new_directory(target, name), false};
    }
    if (failed != -EEXIST) {
        throw EnvironmentError("cannot make the run directory " + path + ": " + std::strerror(-failed));
    }
    if (!plan.target.use_existing) {
        throw EnvironmentError(path + " already exists: choose another target.directory, run `sonde clean " +
                               plan.target.path + "` if a killed run left it, or set target.use_existing");
    }
    files::ConfinedDirectory directory = target.open_entry(name);
    if (!directory) {
        struct stat info {};
        const bool link = target.status(name, info) == 0 && S_ISLNK(info.st_mode);
        if (directory.error() != ENOTDIR && directory.error() != ELOOP) {
            throw EnvironmentError("cannot open " + path + ": " + std::strerror(directory.error()));
        }
        throw EnvironmentError(path + " is not a directory" +
                               (link ? " but a link, which may lead away from the target" : "") +
                               ": choose another target.directory");
    }
    // `clean` can still remove files that an earlier run kept.
    const bool existed_before = !was_made_by_run(directory);
    return {std::move(directory), existed_before};
}

void make_directories_of_files(const files::ConfinedDirectory& run_root, const files::FileMap& map, bool may_exist) {
    std::map<std::string, files::ConfinedDirectory> others;
    for (std::size_t i = 1; i < map.root_directories().size(); ++i) {
        others[map.root_directories()[i]] = make_root(map.root_directories()[i], may_exist);
    }
    for (const std::string& path : map.directories()) {
        if (others.contains(path)) {
            continue;
        }
        const std::size_t slash = path.rfind('/');
        const auto other = others.find(path.substr(0, slash));
        const files::ConfinedDirectory& root = other == others.end() ? run_root : other->second;
        const int failed = root.make_directory(path.substr(slash + 1), run_directory_mode);
        if (failed != 0 && failed != -EEXIST) {
            throw EnvironmentError("cannot make " + path + ": " + std::strerror(-failed));
        }
    }
}

std::string make_run_id(const std::string& name) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 32> stamp{};
    std::strftime(stamp.data(), stamp.size(), "%Y%m%dT%H%M%SZ", &parts);
    return std::string(stamp.data()) + "-" + name + "-" + std::to_string(getpid());
}

}  // namespace sonde::runs
