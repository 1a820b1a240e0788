// SPDX-License-Identifier: Apache-2.0
// Which files are handed to the threads of the library, and what these do on their walk over all files: without a
// thread.
#include "held.hpp"

#include "buffer/state.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <string>

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
    for (const bool wanted : {true, false}) {
        CAPTURE(wanted);
        const Folder folder;
        use(wanted ? "*:size=4k:count=8,%process:age=600" : "*:size=4k:count=8:preflush=0,%process:age=600");
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
        CHECK(Nobody::taken() == (wanted ? file : nullptr));
        REQUIRE(write_at(fd, text.data(), 50, 4096) == 50);
        CHECK(Nobody::taken() == nullptr);
        REQUIRE(write_at(fd, text.data(), 4046, 4146) == 4046);
        CHECK(Nobody::taken() == (wanted ? file : nullptr));
        CHECK(close_buffered(fd) == 0);
        Nobody::taken();
    }
}

TEST_CASE("a child has a crew of its own, which is handed what its parent's crew had on its list") {
    use(quiet);
    const Nobody nobody;
    const Held one(quiet);
    buffer::hand_to_workers(file_of(one.fd));
    const std::uint32_t before = crew.number;
    REQUIRE(file_of(one.fd).on_list_of == before);
    buffer::workers_after_fork();
    CHECK(crew.number == before + 1);  // and so never that of an ancestor's crew, nor zero: on no list
    CHECK(crew.started == 0);
    crew.started = crew.made = 1;
    CHECK(Nobody::taken() == nullptr);
    buffer::hand_to_workers(file_of(one.fd));
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
        buffer::let_go(one.fd, "test");
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
    CHECK(mode_of(one.fd) == Mode::Through);
    CHECK(why(one.fd).find("append") != std::string::npos);
    CHECK(contents(one.path) == one.text);
}
