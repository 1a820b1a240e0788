// SPDX-License-Identifier: Apache-2.0
// Programs that answer, that fail and that hang.
#include "records/program_output.hpp"

#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

using sonde::records::ProgramOutput;
using sonde::records::run_and_read;
using std::chrono::milliseconds;

namespace {

/// True when the process is gone, or waits for its parent to notice.
bool is_over(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string status;
    std::getline(file, status);
    const std::size_t name_end = status.rfind(')');
    return name_end == std::string::npos || status.at(name_end + 2) == 'Z';
}

}  // namespace

TEST_CASE("program_output_and_exit_code_are_returned") {
    const ProgramOutput good = run_and_read({"sh", "-c", "echo out; echo err >&2"});
    CHECK(good.succeeded());
    CHECK(good.text == "out\nerr\n");
    CHECK(good.first_line() == "out");
    CHECK(good.last_line() == "err");
    CHECK(run_and_read({"echo"}).last_line().empty());
    CHECK(run_and_read({"printf", "remark\n why \n\n"}).last_line() == " why");
    CHECK(run_and_read({"sh", "-c", "exit 3"}).exit_code == 3);
    CHECK(run_and_read({"sh", "-c", "kill -9 $$"}).exit_code == -1);
    CHECK(run_and_read({"/nowhere/at/all"}).text == "No such file or directory");
}

TEST_CASE("hanging_program_is_killed_with_its_group") {
    const sonde::tests::TemporaryFolder folder;
    const std::string file = folder / "pid";
    for (const std::string& hang :
         {"sleep 1000 & echo $! > " + file + "; echo so far; wait", std::string("exec >&- 2>&-; exec sleep 1000")}) {
        const ProgramOutput late = run_and_read({"sh", "-c", hang}, 262144, milliseconds(500));
        CHECK(late.timed_out);
        CHECK_FALSE(late.succeeded());
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
