// SPDX-License-Identifier: Apache-2.0
// Programs that answer, that fail and that hang.
#include "records/program_output.hpp"

#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

using sonde::records::output_of;
using sonde::records::ProgramOutput;
using std::chrono::milliseconds;

namespace {

/// True when the process is gone, or waits for its parent to notice.
bool is_over(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string words;
    std::getline(file, words);
    const std::size_t name_end = words.rfind(')');
    return name_end == std::string::npos || words.at(name_end + 2) == 'Z';
}

}  // namespace

TEST_CASE("what a program says and how it ended is told") {
    const ProgramOutput good = output_of({"sh", "-c", "echo out; echo err >&2"});
    CHECK(good.ok());
    CHECK(good.text == "out\nerr\n");
    CHECK(good.first_line() == "out");
    CHECK(good.last_line() == "err");
    CHECK(output_of({"echo"}).last_line().empty());
    CHECK(output_of({"printf", "remark\n why \n\n"}).last_line() == " why");
    CHECK(output_of({"sh", "-c", "exit 3"}).code == 3);
    CHECK(output_of({"sh", "-c", "kill -9 $$"}).code == -1);
    CHECK(output_of({"/nowhere/at/all"}).text == "No such file or directory");
}

TEST_CASE("a program that hangs is ended with what it started, and the sentence says so") {
    const sonde::tests::TemporaryFolder folder;
    const std::string file = folder / "pid";
    for (const std::string& hang :
         {"sleep 1000 & echo $! > " + file + "; echo so far; wait", std::string("exec >&- 2>&-; exec sleep 1000")}) {
        const ProgramOutput late = output_of({"sh", "-c", hang}, 262144, milliseconds(500));
        CHECK(late.late);
        CHECK_FALSE(late.ok());
        CHECK(late.text == "no answer within 1 s, so it was ended");
    }
    std::string pid;
    std::ifstream(file) >> pid;
    if (!pid.empty()) {  // else the machine was so busy that nothing had been started
        for (int i = 0; i < 10'000 && !is_over(pid); ++i) {
            std::this_thread::sleep_for(milliseconds(1));
        }
        CHECK(is_over(pid));
    }
}
