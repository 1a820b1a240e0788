// SPDX-License-Identifier: Apache-2.0
// Remains of a removal whose directories cannot be removed, or are exchanged meanwhile.
#include "files/removal.hpp"

#include "../temporary_folder.hpp"
#include "swapper.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <string>

using sonde::files::ConfinedDirectory;
using sonde::files::Manifest;
using sonde::files::open_run_directories;
using sonde::files::Removal;
using sonde::tests::Swapper;
using sonde::tests::TemporaryFolder;

namespace {

Manifest manifest_of_tasks(int threads) {
    Manifest manifest;
    manifest.run_id = "run";
    manifest.files.directories = sonde::plan::DirectoryMapping::per_task;
    manifest.tasks.threads_per_process = threads;
    manifest.tasks.node_of_process = {0};
    return manifest;
}

Removal remove_held(const ConfinedDirectory& held, const Manifest& manifest) {
    return sonde::files::remove_run(open_run_directories(held.duplicate(), manifest.files), manifest, false);
}

void make_file(int directory, const char* name) {
    ::close(::openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

/// A run directory of one task, made where nobody else looks and then moved to `target`/run.
void make_run(int target) {
    REQUIRE(::mkdirat(target, "private/run", 0777) == 0);
    const sonde::files::Descriptor run(::openat(target, "private/run", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ::fchmod(*run, 0777);
    ::mkdirat(*run, "t00000000", 0755);
    make_file(*run, "t00000000/data.t00000000");
    make_file(*run, sonde::files::manifest_name);
    REQUIRE(::symlinkat("../../victim", *run, "link") == 0);
    REQUIRE(::renameat(target, "private/run", target, "run") == 0);
}

/// Removes what is left for the next try; again when names were exchanged meanwhile, which ends with one of them.
void remove_rest(const std::string& target) {
    for (const char* name : {"run", "exchanged"}) {
        const std::filesystem::path path = std::filesystem::path(target) / name;
        while (std::filesystem::exists(std::filesystem::symlink_status(path))) {
            std::error_code ignored;
            std::filesystem::remove_all(path, ignored);
        }
    }
}

/// Whether a removal met a name that stood for something else than before.
bool met_exchange(const Removal& removal) {
    return std::any_of(removal.remaining.begin(), removal.remaining.end(), [](const std::string& sentence) {
        return sentence.find("is not a directory") != std::string::npos ||
               sentence.find("moved or replaced") != std::string::npos;
    });
}

/// Removes runs while another user exchanges two names; returns how often the removal found an exchanged one.
int remove_while_swapping(const std::string& first, const std::string& second, bool stepwise) {
    const TemporaryFolder folder("/dev/shm");
    ::chmod(folder.path().c_str(), 0755);
    const std::string target = folder / "target";
    folder.write("victim/data.t00000000", "thesis");
    folder.write("victim/t00000000/data.t00000000", "thesis");
    folder.write("target/private/none", "");
    ::chmod((folder / "target/private").c_str(), 0700);
    ::chmod(target.c_str(), 0777);
    const Manifest manifest = manifest_of_tasks(1);
    ConfinedDirectory::force_stepwise_resolution(stepwise);
    int exchanged = 0;
    {
        const ConfinedDirectory held = ConfinedDirectory::open(target);
        const Swapper swapper(target + "/" + first, target + "/" + second);
        constexpr int tries = 10'000;
        for (int i = 0; i < tries; ++i) {
            REQUIRE(::symlinkat("../victim", held.descriptor(), "exchanged") == 0);
            make_run(held.descriptor());
            const ConfinedDirectory run = held.open_subdirectory("run");
            const Removal removal = run ? remove_held(run, manifest) : Removal{};
            exchanged += !run || met_exchange(removal) ? 1 : 0;
            REQUIRE(std::filesystem::exists(folder / "victim/data.t00000000"));
            REQUIRE(std::filesystem::exists(folder / "victim/t00000000/data.t00000000"));
            remove_rest(target);
        }
    }
    ConfinedDirectory::force_stepwise_resolution(false);
    return exchanged;
}

}  // namespace

TEST_CASE("directory that cannot be removed keeps its manifest") {
    const TemporaryFolder folder;
    const std::string directory = folder / "run";
    std::filesystem::create_directory(directory);
    Manifest manifest;
    manifest.run_id = "run";
    const ConfinedDirectory held = ConfinedDirectory::open_made(directory);
    manifest.save(held);
    // Another directory takes its name.
    std::filesystem::rename(directory, folder / "moved");
    std::filesystem::create_directory(directory);
    const Removal refused = remove_held(held, manifest);
    REQUIRE(refused.remaining.size() == 1);
    CHECK(refused.remaining[0].find("could not be removed") != std::string::npos);
    CHECK(std::filesystem::exists(folder / "moved/" + sonde::files::manifest_name));
    CHECK(std::filesystem::exists(directory));
    std::filesystem::remove(directory);
    std::filesystem::rename(folder / "moved", directory);
    CHECK(remove_held(held, manifest).remaining.empty());
    CHECK_FALSE(std::filesystem::exists(directory));
}

TEST_CASE("directory moved away during removal is reported") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "run");
    const ConfinedDirectory held = ConfinedDirectory::open_made(folder / "run");
    manifest_of_tasks(1).save(held);
    std::filesystem::create_directory(folder / "other");
    std::filesystem::rename(folder / "run", folder / "other/elsewhere");
    const Removal removal = remove_held(held, manifest_of_tasks(1));
    REQUIRE(removal.remaining.size() == 1);
    CHECK(removal.remaining[0] ==
          (folder / "run") +
              " could not be removed: it was moved or replaced while its files were being removed; "
              "what has its name now is left alone");
    CHECK(std::filesystem::exists(folder / "other/elsewhere"));
}

TEST_CASE("files of other users in across directories stay") {
    if (!sonde::tests::is_root()) {
        MESSAGE("skipped: only root can give files away");
        return;
    }
    const TemporaryFolder folder;
    folder.write("other/run/data", "thesis");
    REQUIRE(::chown((folder / "other/run").c_str(), 65534, 65534) == 0);
    std::filesystem::create_directory(folder / "run");
    Manifest manifest = manifest_of_tasks(1);
    manifest.files.mapping = sonde::plan::Mapping::shared;
    manifest.files.across = {folder / "other"};
    const ConfinedDirectory held = ConfinedDirectory::open_made(folder / "run");
    manifest.save(held);
    const Removal removal = remove_held(held, manifest);
    REQUIRE(removal.remaining.size() == 1);
    CHECK(removal.remaining[0].starts_with((folder / "other/run") + " belongs to user 65534"));
    CHECK(std::filesystem::exists(folder / "other/run/data"));
}

TEST_CASE("exchanged run directory never leads removal to a victim") {
    for (const bool stepwise : {false, true}) {
        CAPTURE(stepwise);
        CHECK(remove_while_swapping("run", "exchanged", stepwise) > 0);
    }
}

TEST_CASE("exchanged directory never leads removal to a victim") {
    for (const bool stepwise : {false, true}) {
        CAPTURE(stepwise);
        CHECK(remove_while_swapping("run/t00000000", "run/link", stepwise) > 0);
    }
}
