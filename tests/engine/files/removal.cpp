// SPDX-License-Identifier: Apache-2.0
// What becomes of the list of a run's files when their directory cannot be removed.
#include "files/removal.hpp"

#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <filesystem>

TEST_CASE("a directory that cannot be removed keeps the list of what was in it") {
    const sonde::tests::TemporaryFolder folder;
    const std::string directory = folder / "run";
    std::filesystem::create_directory(directory);
    sonde::files::Manifest manifest;
    manifest.run = "run";
    manifest.save(directory);
    // A path that ends so names no entry that could be removed, as little as one on a server that is away.
    const sonde::files::Removal refused = sonde::files::remove_run(directory + "/.", manifest, false);
    REQUIRE(refused.left.size() == 1);
    CHECK(refused.left[0].find("could not be removed") != std::string::npos);
    CHECK(std::filesystem::exists(directory + "/" + sonde::files::manifest_name));
    CHECK(sonde::files::remove_run(directory, manifest, false).left.empty());
    CHECK_FALSE(std::filesystem::exists(directory));
}
