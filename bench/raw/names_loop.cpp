// SPDX-License-Identifier: Apache-2.0
// The barest loops over names: all names are there before the clock starts.
#include "names_loop.hpp"

#include "raw.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace sonde::bench {
namespace {

/// Seconds that `call` needs for all names; `call` returns 0 when it has done what it should.
template <class Call>
double time_of(const std::vector<std::string>& names, const char* operation, Call call) {
    const double begin = now();
    for (const std::string& name : names) {
        if (call(name.c_str()) != 0) {
            throw RawError(std::string(operation) + " of " + name + ": " + std::strerror(errno));
        }
    }
    return now() - begin;
}

}  // namespace

NamesCount names_loop(const std::string& folder, std::size_t items, bool full) {
    const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) {
        throw RawError("cannot open " + folder + ": " + std::strerror(errno));
    }
    const int directory = full ? AT_FDCWD : opened;
    std::vector<std::string> names;
    names.reserve(items);
    for (std::size_t i = 0; i < items; ++i) {
        names.push_back((full ? folder + "/" : std::string()) + "file.0." + std::to_string(i));
    }
    NamesCount count;
    count.create = time_of(names, "create", [directory](const char* name) {
        const int file = ::openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        return file < 0 ? -1 : ::close(file);
    });
    count.stat = time_of(names, "stat", [directory](const char* name) {
        struct stat facts {};
        return ::fstatat(directory, name, &facts, 0);
    });
    count.open_close = time_of(names, "open", [directory](const char* name) {
        const int file = ::openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        return file < 0 ? -1 : ::close(file);
    });
    count.remove = time_of(names, "remove", [directory](const char* name) { return ::unlinkat(directory, name, 0); });
    ::close(opened);
    return count;
}

}  // namespace sonde::bench
