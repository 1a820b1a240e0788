// SPDX-License-Identifier: Apache-2.0
// From arguments to settings, and the rules between them.
#include "dialects/dialect.hpp"
#include "dialects/mdtest/settings.hpp"
#include "plan/plan_error.hpp"

#include <algorithm>
#include <cctype>

namespace sonde::dialects::mdtest {
namespace {

using plan::PlanError;

void check_api(const MdtestSettings& s) {
    if (s.api == "POSIX" || s.api == "DUMMY") {
        if (s.api == "DUMMY" && s.direct) {
            throw PlanError("--posix.odirect goes with -a POSIX only");
        }
        return;
    }
    constexpr const char* interfaces[] = {"MPIIO",    "MMAP",    "AIO",   "HDF5",    "NCMPI", "S3-4c",
                                          "S3-libs3", "S3-curl", "RADOS", "CEPHFS",  "DFS",   "HDFS",
                                          "Gfarm",    "LIBNFS",  "IME",   "FINCHFS", "CHFS",  "PMDK"};
    const bool real = std::any_of(std::begin(interfaces), std::end(interfaces),
                                  [&s](const char* interface) { return s.api == interface; });
    throw PlanError(real ? "-a " + s.api +
                               " is refused: this engine has no operations on names through it; use -a POSIX on a "
                               "mounted file system"
                         : "-a is \"" + s.api + "\", but must be POSIX or DUMMY");
}

void check_together(const MdtestSettings& s) {
    const auto refuse = [](const char* text) { throw PlanError(text); };
    if (s.no_barriers != 0) {
        refuse(
            "-B (no barriers) is refused: a phase that begins while another task is in the one before measures both; "
            "mdtest itself ends with an error here");
    }
    if (s.stonewall_s > 0 && s.branching > 1) {
        refuse("-W (stonewall) needs a branching factor of 1 (-b): the items before it must be the first of the tree");
    }
    if (s.shared_file && s.single_task) {
        refuse("-c does not go with -S: files of all are made by all");
    }
    if (s.unique && s.shared_file) {
        refuse("-u does not go with -S: a file of all lies in one tree");
    }
    if (s.directory.find('@') != std::string::npos) {
        refuse(
            "-d with several directories (@) is refused: a run writes below one directory; start one run for each, or "
            "name the directory above them");
    }
    if (s.directory.empty()) {
        refuse("-d must name a directory");
    }
    if (s.items > 0 && s.items_per_dir > 0 && s.unique) {
        refuse("-n and -I exclude each other with -u: say how many items a task or how many a directory");
    }
    if (s.items > 0 && s.items_per_dir > 0 && s.items % s.items_per_dir != 0) {
        refuse("-n must be a multiple of -I: it then means n / I test directories");
    }
    if (s.make_node && s.write_bytes > 0) {
        refuse("-k does not go with -w: mknod opens nothing that could be written to");
    }
    if (s.verify_read && s.read_bytes == 0) {
        refuse("-X (verify) needs -e: how many bytes to read");
    }
    if (s.verify_read && !s.read && !s.all_phases()) {
        refuse("-X (verify) needs -E: it verifies what is read");
    }
    if ((s.all_phases() || (s.create && s.read)) && s.read_bytes > s.write_bytes) {
        refuse("-e must not be more than -w: files hold what was written");
    }
    if (s.last > 0 && s.first > s.last) {
        refuse("-f is more than -l: the first number of tasks must not be above the last");
    }
    if (s.write_bytes > (1ULL << 30U) || s.read_bytes > (1ULL << 30U)) {
        refuse("-w and -e must not be more than 1 GiB: for large files use the dialect ior, or a plan");
    }
}

}  // namespace

MdtestSettings parse_arguments(const std::vector<std::string>& arguments) {
    const OptionLanguage<MdtestSettings> language{"mdtest", options(), explain_refusal};
    MdtestSettings s = ArgumentParser<MdtestSettings>(language, arguments).read();
    check_api(s);
    check_together(s);
    if (s.all_phases()) {
        s.create = s.stat = s.read = s.remove = s.rename = true;
    }
    if (!s.files && !s.directories) {
        s.files = s.directories = true;
    }
    if (s.shared_file) {
        s.directories = false;
        s.files = true;
    }
    if (s.read && s.files && s.read_bytes == 0) {
        s.warnings.emplace_back("Read bytes is 0, thus, a read test will actually just open/close");
    }
    if (s.warnings_are_errors && !s.warnings.empty()) {
        throw PlanError("--warningAsErrors: " + s.warnings.front());
    }
    return s;
}

}  // namespace sonde::dialects::mdtest
