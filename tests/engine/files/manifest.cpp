// SPDX-License-Identifier: Apache-2.0
// The owners whose manifests count, and that no manifest is written through a link.
#include "files/manifest.hpp"

#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using sonde::files::ConfinedDirectory;
using sonde::files::Manifest;
using sonde::files::Trust;
using sonde::tests::TemporaryFolder;

namespace {

/// A directory with a manifest of this user.
struct WithManifest {
    TemporaryFolder folder;
    std::string path = folder / "run";
    std::string file = path + "/" + sonde::files::manifest_name;

    WithManifest() {
        std::filesystem::create_directory(path);
        Manifest manifest;
        manifest.run_id = "mine";
        manifest.tasks = {.threads_per_process = 1, .node_of_process = {0}};
        manifest.save(ConfinedDirectory::open(path));
    }

    /// "loaded", "none", or the sentence of the refusal.
    std::string load(Trust trust) const {
        try {
            return Manifest::load(ConfinedDirectory::open(path), trust) ? "loaded" : "none";
        } catch (const sonde::files::UntrustedManifestError& ignored) {
            return ignored.what();
        } catch (const std::exception& error) {
            return std::string("damaged: ") + error.what();
        }
    }
};

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("trusted manifest in a trusted directory counts") {
    const WithManifest run;
    for (const Trust trust : {Trust::anybody, Trust::caller, Trust::removal}) {
        CHECK(run.load(trust) == "loaded");
    }
    std::filesystem::rename(run.file, run.path + "/" + sonde::files::manifest_draft_name);
    CHECK(run.load(Trust::removal) == "loaded");
    std::filesystem::remove(run.path + "/" + sonde::files::manifest_draft_name);
    CHECK(run.load(Trust::removal) == "none");
}

TEST_CASE("manifest of another user is ignored with its owner") {
    if (!sonde::tests::is_root()) {
        MESSAGE("skipped: only root can give files away");
        return;
    }
    const WithManifest run;
    REQUIRE(::chown(run.file.c_str(), 65534, 65534) == 0);
    for (const Trust trust : {Trust::caller, Trust::removal}) {
        const std::string sentence = run.load(trust);
        CHECK(sentence.starts_with("the manifest " + run.file + " of user 65534"));
        CHECK(has(sentence, "is ignored, because only manifests of root count: let its owner run `sonde clean`"));
    }
    CHECK(run.load(Trust::anybody) == "loaded");
    // Whatever it contains: it is not even read.
    const TemporaryFolder other;
    std::filesystem::resize_file(run.file, 1);
    CHECK(has(run.load(Trust::removal), "is ignored"));
}

TEST_CASE("manifest writable by other users is ignored") {
    const WithManifest run;
    for (const mode_t mode : {0664, 0646}) {
        REQUIRE(::chmod(run.file.c_str(), mode) == 0);
        CHECK(has(run.load(Trust::caller), "is ignored, because other users can write to it: look at " + run.path));
        CHECK(has(run.load(Trust::removal), "is ignored, because other users can write to it: look at " + run.path));
    }
}

TEST_CASE("manifest in a world-writable directory removes nothing") {
    const WithManifest run;
    for (const mode_t mode : {0777, 0775, 0757}) {
        REQUIRE(::chmod(run.path.c_str(), mode) == 0);
        const std::string sentence = run.load(Trust::removal);
        CHECK(has(sentence, "is ignored, because its directory can be written by other users"));
        CHECK(has(sentence, "chmod go-w " + run.path));
        CHECK(run.load(Trust::caller) == "loaded");
    }
    REQUIRE(::chmod(run.path.c_str(), 01777) == 0);
    CHECK(run.load(Trust::removal) == "loaded");
    if (sonde::tests::is_root()) {
        REQUIRE(::chown(run.path.c_str(), 65534, 65534) == 0);
        REQUIRE(::chmod(run.path.c_str(), 0755) == 0);
        CHECK(has(run.load(Trust::removal), "is ignored, because its directory belongs to user 65534"));
    }
}

TEST_CASE("manifest with a second name removes nothing") {
    const WithManifest run;
    std::filesystem::create_hard_link(run.file, run.folder / "second");
    CHECK(has(run.load(Trust::removal), "is ignored, because it has another name elsewhere"));
    CHECK(run.load(Trust::caller) == "loaded");
}

TEST_CASE("manifest is written through no link") {
    const WithManifest run;
    const std::string victim = run.folder.write("victim", "thesis");
    const std::string draft = run.path + "/" + sonde::files::manifest_draft_name;
    std::filesystem::create_symlink(victim, draft);
    std::filesystem::remove(run.file);
    std::filesystem::create_symlink(victim, run.file);
    CHECK(run.load(Trust::anybody).starts_with("damaged: "));
    Manifest manifest;
    manifest.tasks = {.threads_per_process = 1, .node_of_process = {0}};
    manifest.save(ConfinedDirectory::open(run.path));
    CHECK(run.load(Trust::removal) == "loaded");
    CHECK(sonde::tests::size_of(victim) == 6);
    CHECK_FALSE(std::filesystem::exists(draft));
    CHECK_FALSE(std::filesystem::is_symlink(run.file));
}

TEST_CASE("manifest with a fraction for a count is damaged") {
    const WithManifest stored;
    std::ifstream file(stored.file);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    CHECK(Manifest::parse(text).run_id == "mine");
    for (const char* member : {"\"pid\":", "\"threads\":", "\"count\":", "\"period\":", "\"mapping\":"}) {
        const std::size_t value = text.find(member) + std::string(member).size();
        const std::size_t end = text.find_first_of(",}", value);
        CHECK_THROWS(Manifest::parse(text.substr(0, value) + "1e300" + text.substr(end)));
    }
    CHECK_THROWS(Manifest::parse(std::string(100, '[') + std::string(100, ']')));
}
