// SPDX-License-Identifier: Apache-2.0
#include "files/manifest.hpp"

#include "files/descriptor.hpp"
#include "records/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sonde::files {
namespace {

using nlohmann::json;

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// When a process started, in clock ticks since boot (field 22 of /proc/PID/stat); 0 when it is not there, or dead.
std::uint64_t start_of(int pid) {
    const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) {
        return 0;
    }
    std::istringstream fields(line.substr(name_end + 1));
    std::string field;
    fields >> field;
    if (field == "Z" || field == "X") {  // killed, and nobody has asked for its exit code yet: it writes nothing more
        return 0;
    }
    for (int i = 4; i <= 22 && fields >> field; ++i) {
    }
    return std::strtoull(field.c_str(), nullptr, 10);
}

std::string host_name() {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    return name;
}

std::string pid_namespace() {
    std::array<char, 64> text{};
    const ssize_t length = ::readlink("/proc/self/ns/pid", text.data(), text.size());
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length))};
}

/// The whole of a regular file, not through a symbolic link; empty when there is none.
std::optional<std::string> read_plain_file(const std::string& path) {
    constexpr off_t longest = 1 << 28;
    // O_NONBLOCK: somebody may have put a pipe here, which would be waited for.
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (*file < 0 && errno == ENOENT) {
        return std::nullopt;
    }
    struct stat info {};
    if (*file < 0 || ::fstat(*file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > longest) {
        throw std::runtime_error("not a file");
    }
    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t got = 0;
    for (ssize_t count = 1; got < text.size() && count > 0; got += static_cast<std::size_t>(count)) {
        count = std::max<ssize_t>(0, ::read(*file, text.data() + got, text.size() - got));
    }
    text.resize(got);
    return text;
}

void write_all(const std::string& path, const std::string& text) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    bool good = fd >= 0;
    for (std::size_t done = 0; good && done < text.size();) {
        const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
        good = count > 0;
        done += good ? static_cast<std::size_t>(count) : 0;
    }
    good = good && ::fsync(fd) == 0;
    const int code = errno;
    if (fd >= 0) {
        ::close(fd);
    }
    if (!good) {
        const std::string why = "cannot write the manifest " + path + ": " + std::strerror(code);
        if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
            throw NoSpace(why);
        }
        throw std::runtime_error(why);
    }
}

}  // namespace

void Manifest::stamp_this_process() {
    host = host_name();
    boot = first_line("/proc/sys/kernel/random/boot_id");
    pid_space = pid_namespace();
    pid = getpid();
    process_start = start_of(pid);
}

Life Manifest::life() const {
    if (host != host_name()) {
        return Life::elsewhere;
    }
    if (boot != first_line("/proc/sys/kernel/random/boot_id")) {
        return Life::ended;
    }
    if (pid_space != pid_namespace()) {
        return Life::elsewhere;
    }
    return process_start != 0 && start_of(pid) == process_start ? Life::alive : Life::ended;
}

void Manifest::save(const std::string& directory) const {
    json out{{"sonde_manifest", 1},
             {"run", run},
             {"host", records::json_text(host)},
             {"boot", boot},
             {"pid_space", pid_space},
             {"pid", pid},
             {"process_start", process_start},
             {"period", period},
             {"epoch_ns", epoch_ns},
             {"half_rates", {{"write", half_write}, {"read", half_read}}},
             {"found", found},
             {"files",
              {{"mapping", static_cast<int>(files.mapping)},
               {"group_size", files.group_size},
               {"count", files.count},
               {"directories", static_cast<int>(files.directories)},
               {"name", files.name},
               {"across", files.across}}},
             {"threads", tasks.threads},
             {"node_of_process", tasks.node_of_process},
             {"data", data.to_json()},
             {"has_data", has_data},
             {"trees", trees.to_json()}};
    const std::string path = directory + "/" + manifest_name;
    const std::string draft = path + ".new";
    try {
        write_all(draft, out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    } catch (...) {
        ::unlink(draft.c_str());  // half a manifest says nothing, and the one before it still stands
        throw;
    }
    if (::rename(draft.c_str(), path.c_str()) != 0) {
        throw std::runtime_error("cannot rename the manifest " + path + ": " + std::strerror(errno));
    }
    const Descriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (*folder >= 0) {
        ::fsync(*folder);  // the name as well; where directories cannot be synced, the file is all there is
    }
}

namespace {

template <class Enum>
Enum enumerator(const json& value, Enum last) {
    const int number = value.get<int>();
    if (number < 0 || number > static_cast<int>(last)) {
        throw std::runtime_error("impossible values");
    }
    return static_cast<Enum>(number);
}

/// What the engine never writes, but a hand might: each of these would lead it astray.
bool possible(const Manifest& m) {
    const plan::Files& f = m.files;
    constexpr std::size_t most_processes = 1U << 24U;
    const auto& nodes = m.tasks.node_of_process;
    const bool map = m.tasks.threads > 0 && m.tasks.threads <= 4096 && !nodes.empty() &&
                     nodes.size() <= most_processes &&
                     nodes.size() * static_cast<std::size_t>(m.tasks.threads) <= INT32_MAX &&
                     std::all_of(nodes.begin(), nodes.end(),
                                 [&](int node) { return node >= 0 && static_cast<std::size_t>(node) < nodes.size(); });
    const bool names = !f.name.empty() && f.name.size() <= 128 && f.name[0] != '.' &&
                       f.name.find('/') == std::string::npos && f.name.find('\0') == std::string::npos;
    const bool places = std::all_of(f.across.begin(), f.across.end(), [](const std::string& one) {
        return !one.empty() && one[0] == '/' && one.find('\0') == std::string::npos;
    });
    const bool counts = f.count > 0 && f.count <= 100'000'000 && f.group_size >= 0 &&
                        (f.mapping != plan::Mapping::per_group || f.group_size > 0);
    const auto& states = m.data.states();
    return map && names && places && counts && std::all_of(states.begin(), states.end(), [&](const DataState& state) {
               return state.access.transfer > 0 && state.access.block >= state.access.transfer && state.segments > 0 &&
                      state.operations.size() == static_cast<std::size_t>(m.tasks.tasks()) &&
                      std::all_of(state.files.begin(), state.files.end(), [&](int k) { return k >= 0 && k < f.count; });
           });
}

Manifest parse_manifest(const std::string& text) {
    const json in = json::parse(text);
    if (in.at("sonde_manifest") != 1) {
        throw std::runtime_error("another version");
    }
    Manifest m;
    m.run = in.at("run");
    m.host = records::bytes_of(in.at("host").get<std::string>());
    m.boot = in.at("boot");
    m.pid_space = in.value("pid_space", std::string());
    m.pid = in.at("pid");
    m.process_start = in.at("process_start");
    m.period = in.at("period");
    m.epoch_ns = in.value("epoch_ns", std::int64_t{0});
    if (in.contains("half_rates")) {
        m.half_write = in.at("half_rates").at("write");
        m.half_read = in.at("half_rates").at("read");
    }
    m.found = in.value("found", false);
    const json& f = in.at("files");
    m.files.mapping = enumerator(f.at("mapping"), plan::Mapping::many);
    m.files.group_size = f.at("group_size");
    m.files.count = f.at("count");
    m.files.directories = enumerator(f.at("directories"), plan::Directories::per_node);
    m.files.name = f.at("name");
    m.files.across = f.value("across", std::vector<std::string>{});
    m.tasks.threads = in.at("threads");
    m.tasks.node_of_process = in.at("node_of_process").get<std::vector<int>>();
    m.data = Dataset::from_json(in.at("data"));
    m.has_data = in.value("has_data", true);
    if (in.contains("trees")) {
        const std::size_t all = static_cast<std::size_t>(std::max(0, m.tasks.threads)) * m.tasks.node_of_process.size();
        m.trees = Forest::from_json(in.at("trees"), static_cast<int>(std::min<std::size_t>(all, INT32_MAX)));
    }
    if (!possible(m)) {
        throw std::runtime_error("impossible values");
    }
    return m;
}

}  // namespace

std::optional<Manifest> Manifest::load(const std::string& directory) {
    const std::string path = directory + "/" + manifest_name;
    try {
        std::optional<std::string> text = read_plain_file(path);
        if (!text) {
            // Killed while the very first one was written.
            text = read_plain_file(path + ".new");
        }
        return text ? std::optional<Manifest>(parse_manifest(*text)) : std::nullopt;
    } catch (const std::exception&) {
        throw std::runtime_error(
            "the manifest " + path +
            " is damaged or was not written by Sonde, so it does not say what may be removed: look "
            "at the directory and remove it by hand");
    }
}

void Manifest::remove(const std::string& directory) {
    ::unlink((directory + "/" + manifest_name).c_str());
}

}  // namespace sonde::files
