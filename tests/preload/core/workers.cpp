// SPDX-License-Identifier: Apache-2.0
// Which files are handed to the threads of the library, and what these do on their walk over all files: without a
// thread.
#include "held.hpp"

#include "model/state.hpp"
#include "modes/modes.hpp"
#include "system/clock.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

using namespace under_test;
using buffer::crew;
using buffer::File;
using buffer::Mode;

namespace {

/// A crew that takes every file it is given, and of which nobody works. To be made after the settings.
struct Nobody {
    Nobody() {
        dismiss_crew();
        crew.started = crew.made = 1;
        crew.calm = 2;
    }
    ~Nobody() { buffer::workers_after_fork(); }
    /// Takes what was handed over, as a thread does; nullptr when there was nothing.
    static File* taken() {
        File* file = buffer::next_file();
        if (file != nullptr) {
            file->on_list_of = 0;
        }
        return file;
    }
};

}  // namespace

TEST_CASE("threads go round from the first dirty byte on, and a file is handed over with each full page, if wanted") {
    {
        const Folder folder;
        use("*:size=4k:count=8,%process:age=600");
        const Nobody nobody;
        const int fd = open_buffered(folder.path + "/data", O_RDWR | O_CREAT);
        File* const file = &file_of(fd);
        std::string text(4096, 'x');
        REQUIRE(write_at(fd, text.data(), 100, 0) == 100);
        CHECK(Nobody::taken() == nullptr);  // nobody is in a hurry,
        CHECK(crew.calm == 0);              // but somebody goes round
        REQUIRE(write_at(fd, text.data(), 100, 100) == 100);
        CHECK(Nobody::taken() == nullptr);
        REQUIRE(write_at(fd, text.data(), 3896, 200) == 3896);
        CHECK(Nobody::taken() == file);
        REQUIRE(write_at(fd, text.data(), 50, 4096) == 50);
        CHECK(Nobody::taken() == nullptr);
        REQUIRE(write_at(fd, text.data(), 4046, 4146) == 4046);
        CHECK(Nobody::taken() == file);
        CHECK(close_buffered(fd) == 0);
        Nobody::taken();
    }
}

TEST_CASE("a child has a crew of its own, which is handed what its parent's crew had on its list") {
    use(quiet);
    const Nobody nobody;
    const Held one(quiet);
    buffer::enqueue_file(file_of(one.fd));
    const std::uint32_t before = crew.number;
    REQUIRE(file_of(one.fd).on_list_of == before);
    buffer::workers_after_fork();
    CHECK(crew.number == before + 1);  // and so never that of an ancestor's crew, nor zero: on no list
    CHECK(crew.started == 0);
    crew.started = crew.made = 1;
    CHECK(Nobody::taken() == nullptr);
    buffer::enqueue_file(file_of(one.fd));
    CHECK(Nobody::taken() == &file_of(one.fd));
}

TEST_CASE("the walk over all files finds dirty data, and says whether a file is active") {
    use(quiet);
    const Nobody nobody;
    {
        const Held one(quiet);
        CHECK(Nobody::taken() == nullptr);
        CHECK(buffer::walk_over_files());
        CHECK(Nobody::taken() == &file_of(one.fd));
        buffer::hand_to_kernel(one.fd);
        CHECK(buffer::walk_over_files());
        CHECK(Nobody::taken() == nullptr);
        buffer::release_descriptor(one.fd, "test");
        CHECK_FALSE(buffer::walk_over_files());
    }
    CHECK_FALSE(buffer::walk_over_files());
}

TEST_CASE("a file to which somebody else appended is let go by the walk, also when the program makes no call") {
    use(quiet);
    const Nobody nobody;
    const Held one(quiet);
    buffer::walk_over_files();
    CHECK(mode_of(one.fd) == Mode::Active);
    file_of(one.fd).appended.grew = true;
    buffer::walk_over_files();
    CHECK(mode_of(one.fd) == Mode::Released);
    CHECK(why(one.fd) == buffer::why_grown);
    CHECK(contents(one.path) == one.text);
}

TEST_CASE("files are taken in the order in which they were handed over, 256 at most, each once") {
    use(quiet);
    const Nobody nobody;
    std::vector<std::unique_ptr<File>> files;
    for (int i = 0; i < 257; ++i) {
        files.push_back(std::make_unique<File>());
    }
    crew.first = 200;  // the list goes round
    crew.calm = 2;
    for (const auto& file : files) {
        buffer::enqueue_file(*file);
        buffer::enqueue_file(*file);
    }
    CHECK(crew.count == 256);
    CHECK(crew.calm == 0);  // there is something to do
    CHECK(files[255]->on_list_of == crew.number);
    CHECK(files[256]->on_list_of == 0);  // the walk over all files will find it
    for (int i = 0; i < 256; ++i) {
        REQUIRE(Nobody::taken() == files[static_cast<std::size_t>(i)].get());
    }
    CHECK(Nobody::taken() == nullptr);
    CHECK(crew.first == 200);
}

TEST_CASE("the walk is due when a nap has passed, and calm ones are counted until something happens") {
    use(quiet);
    const Nobody nobody;
    crew.nap_ns = 3'600'000'000'000;
    crew.walked_ns = 0;
    CHECK(buffer::walk_is_due() == (system::now_ns() >= 3'600'000'000'000));
    crew.nap_ns = 0;
    const std::uint64_t before = system::now_ns();
    CHECK(buffer::walk_is_due());
    CHECK(crew.walked_ns >= before);
    crew.nap_ns = 3'600'000'000'000;
    CHECK_FALSE(buffer::walk_is_due());
    crew.calm = 0;
    buffer::note_walk(false);
    buffer::note_walk(false);
    CHECK(crew.calm == 2);
    buffer::note_walk(true);
    CHECK(crew.calm == 0);
    buffer::note_walk(false);
    errno = 77;
    buffer::ensure_workers();
    CHECK(crew.calm == 0);
    CHECK(errno == 77);
}

TEST_CASE("threads are as many as was said, and nap a quarter of the age of data, a second at most") {
    const auto nap = [](const char* params, std::uint32_t& made) {
        dismiss_crew();
        const Folder folder;
        const settings::Settings& settings = use(params);
        const int fd = open_buffered(folder.path + "/data", O_RDWR | O_CREAT);
        char byte = 'x';
        REQUIRE(write_at(fd, &byte, 1, 0) == 1);
        std::int64_t nap_ns = 0;
        {
            const system::Hold hold(crew.lock);
            made = settings.limits.engine == settings::Engine::Ring && buffer::state.ring_refused == 0 ? crew.made + 2
                                                                                                       : crew.made;
            nap_ns = crew.nap_ns;
        }
        CHECK(close_buffered(fd) == 0);
        dismiss_crew();
        return nap_ns;
    };
    std::uint32_t made = 0;
    CHECK(nap("*:size=4k:count=4,%process:age=600:threads=3", made) == 1'000'000'000);
    CHECK(made == 3);
    CHECK(nap("*:size=4k:count=4,%process:age=2:threads=3", made) == 500'000'000);
    CHECK(made == 3);
    dismiss_crew();
}

TEST_CASE("descriptors of a ring and of its alarm are ours while it works, and closed when it does not") {
    const auto ours = [](const std::string& kind) {
        int found = 0;
        for (int fd = 0; fd < 4096; ++fd) {
            char name[100];
            const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name, sizeof(name));
            const bool named =
                length > 0 && std::string(name, static_cast<std::size_t>(length)) == "anon_inode:" + kind;
            found += named && buffer::is_private(fd) ? 1 : 0;
        }
        return found;
    };
    const auto works = [&] {
        use("*:size=4k:count=4,%process:age=600");
        const Folder folder;
        const int fd = open_buffered(folder.path + "/data", O_RDWR | O_CREAT);
        char byte = 'x';
        REQUIRE(write_at(fd, &byte, 1, 0) == 1);
        const bool ring =
            buffer::state.settings->limits.engine == settings::Engine::Ring && buffer::state.ring_refused == 0;
        CHECK(ours("[io_uring]") == (ring ? 1 : 0));
        CHECK(ours("[eventfd]") == (ring ? 1 : 0));
        CHECK(close_buffered(fd) == 0);
    };
    dismiss_crew();
    works();
    dismiss_crew();
    CHECK(ours("[io_uring]") == 0);
    CHECK(ours("[eventfd]") == 0);
    works();
    dismiss_crew();
}
