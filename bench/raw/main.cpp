// SPDX-License-Identifier: Apache-2.0
// sonde-bench-raw loop NAME=VALUE…: one bare loop; prints {"ops": …, "seconds": …, "cpu_seconds": …}.
// sonde-bench-raw names FOLDER ITEMS relative|full: seconds of each operation on names.
// sonde-bench-raw child OUT PROGRAM ARGUMENT…: what a process used.
#include "names_loop.hpp"
#include "raw.hpp"

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace {

using sonde::bench::Count;
using sonde::bench::RawError;
using sonde::bench::Task;

constexpr const char* usage =
    "use: sonde-bench-raw loop file=PATH [op=read|write] [transfer=BYTES] [size=BYTES] [order=sequential|random] "
    "[data=BYTES] [seconds=S] [depth=N] [direct=1] [fresh=1]\n"
    "     sonde-bench-raw names FOLDER ITEMS relative|full\n"
    "     sonde-bench-raw child OUT PROGRAM ARGUMENT...";

void set(Task& task, std::string_view name, const std::string& value) {
    if (name == "file") {
        task.file = value;
    } else if (name == "op") {
        task.write = value == "write";
    } else if (name == "transfer") {
        task.transfer = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "size") {
        task.size = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "data") {
        task.data = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "order") {
        task.random = value == "random";
    } else if (name == "seconds") {
        task.seconds = std::strtod(value.c_str(), nullptr);
    } else if (name == "depth") {
        task.depth = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    } else if (name == "direct") {
        task.direct = value == "1";
    } else if (name == "fresh") {
        task.fresh = value == "1";
    } else {
        throw RawError("unknown word " + std::string(name) + "; " + usage);
    }
}

Task parse(std::span<char*> arguments) {
    Task task;
    for (const std::string_view word : arguments) {
        const std::size_t equal = word.find('=');
        if (equal == std::string_view::npos) {
            throw RawError("'" + std::string(word) + "' is not NAME=VALUE; " + usage);
        }
        set(task, word.substr(0, equal), std::string(word.substr(equal + 1)));
    }
    if (task.file.empty() || task.transfer == 0 || task.size == 0 || task.size % task.transfer != 0) {
        throw RawError(std::string("file is needed, and size must be a multiple of transfer; ") + usage);
    }
    if ((task.data & (task.data - 1)) != 0 || (task.data > 0 && task.depth > 0)) {
        throw RawError(std::string("data must be a power of two, and is for pwrite only; ") + usage);
    }
    return task;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        const std::span<char*> all(arguments, static_cast<std::size_t>(count));
        const std::string_view verb = count > 1 ? all[1] : "";
        if (verb == "loop") {
            const Task task = parse(all.subspan(2));
            const Count done = task.depth > 0 ? sonde::bench::uring_loop(task) : sonde::bench::posix_loop(task);
            std::printf("{\"ops\": %llu, \"seconds\": %.9f, \"cpu_seconds\": %.9f}\n",
                        static_cast<unsigned long long>(done.operations), done.seconds, done.cpu_seconds);
            return 0;
        }
        if (verb == "names" && count == 5) {
            const auto seconds = sonde::bench::names_loop(all[2], std::strtoull(all[3], nullptr, 10),
                                                          std::string_view(all[4]) == "full");
            std::printf("{\"create\": %.9f, \"stat\": %.9f, \"open_close\": %.9f, \"remove\": %.9f}\n", seconds.create,
                        seconds.stat, seconds.open_close, seconds.remove);
            return 0;
        }
        if (verb == "child" && count > 3) {
            // execvp wants the null pointer behind the last word, which argv has.
            return sonde::bench::run_child(all[2], all.subspan(3));
        }
        std::fprintf(stderr, "%s\n", usage);
        return 2;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "sonde-bench-raw: %s.\n", failure.what());
        return 3;
    }
}
