// SPDX-License-Identifier: Apache-2.0
#include "dialects/ior/file_names.hpp"

#include "plan/plan_error.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace sonde::dialects::ior {

std::vector<std::string> list_test_paths(const IorSettings& s) {
    const std::string& file = s.file;
    std::vector<std::string> paths;
    for (std::size_t from = 0; from <= file.size();) {
        const std::size_t end = std::min(file.find('@', from), file.size());
        if (end > from) {
            const std::string path = file.substr(from, end - from);
            paths.push_back(s.api == "MPIIO" ? path.substr(find_driver_prefix(path).size()) : path);
        }
        from = end + 1;
    }
    if (paths.empty()) {
        throw plan::PlanError("-o names no file");
    }
    return paths;
}

std::string find_driver_prefix(const std::string& path) {
    // Those of MPICH's ROMIO and of MPIs that were made from it.
    constexpr std::array drivers{"ufs:",  "nfs:",    "xfs:",     "panfs:", "pvfs2:", "lustre:", "gpfs:",
                                 "daos:", "testfs:", "quobyte:", "ime:",   "dfs:",   "pvfs:",   "piofs:"};
    const auto match =
        std::find_if(drivers.begin(), drivers.end(), [&path](const char* driver) { return path.starts_with(driver); });
    return match == drivers.end() ? std::string() : *match;
}

std::string romio_driver(const IorSettings& s) {
    std::string common_driver;
    bool first = true;
    for (std::size_t from = 0; s.api == "MPIIO" && from <= s.file.size(); first = false) {
        const std::size_t end = std::min(s.file.find('@', from), s.file.size());
        const std::string driver = find_driver_prefix(s.file.substr(from, end - from));
        if (!first && driver != common_driver) {
            throw_argument_error(
                "-o " + s.file +
                " names several drivers of ROMIO, which takes one for all files here: name the same before each");
        }
        common_driver = driver;
        from = end + 1;
    }
    return common_driver;
}

std::string get_test_path(const IorSettings& s, int task) {
    const std::vector<std::string> paths = list_test_paths(s);
    if (!s.file_per_process) {
        return paths.front();
    }
    std::string path = paths[static_cast<std::size_t>(task) % paths.size()];
    if (s.unique_directory) {
        const std::size_t slash = path.rfind('/');
        path.insert(slash == std::string::npos ? 0 : slash + 1, std::to_string(task) + "/");
    }
    char number[16];
    std::snprintf(number, sizeof number, ".%08d", task);
    return path + number;
}

}  // namespace sonde::dialects::ior
