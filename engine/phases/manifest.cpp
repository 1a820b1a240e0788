// SPDX-License-Identifier: Apache-2.0
#include "phases/manifest.hpp"

#include "records/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sonde::phases {
namespace {

using nlohmann::json;

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// Field 22 of /proc/PID/stat: when the process started, in clock ticks since boot.
std::uint64_t start_of(int pid) {
    const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) {
        return 0;
    }
    std::istringstream fields(line.substr(name_end + 1));
    std::string field;
    for (int i = 3; i <= 22 && fields >> field; ++i) {
    }
    return std::strtoull(field.c_str(), nullptr, 10);
}

std::string host_name() {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    return name;
}

void write_all(const std::string& path, const std::string& text) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
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
        throw std::runtime_error("cannot write the manifest " + path + ": " + std::strerror(code));
    }
}

}  // namespace

void Manifest::stamp_this_process() {
    host = host_name();
    boot = first_line("/proc/sys/kernel/random/boot_id");
    pid = getpid();
    process_start = start_of(pid);
}

bool Manifest::alive() const {
    return host == host_name() && boot == first_line("/proc/sys/kernel/random/boot_id") &&
           start_of(pid) == process_start && process_start != 0;
}

void Manifest::save(const std::string& directory) const {
    json out{{"sonde_manifest", 1},
             {"run", run},
             {"host", records::json_text(host)},
             {"boot", boot},
             {"pid", pid},
             {"process_start", process_start},
             {"period", period},
             {"files",
              {{"mapping", static_cast<int>(files.mapping)},
               {"group_size", files.group_size},
               {"count", files.count},
               {"directories", static_cast<int>(files.directories)},
               {"name", files.name}}},
             {"threads", tasks.threads},
             {"node_of_process", tasks.node_of_process},
             {"data", data.to_json()}};
    const std::string path = directory + "/" + manifest_name;
    const std::string draft = path + ".new";
    write_all(draft, out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    if (::rename(draft.c_str(), path.c_str()) != 0) {
        throw std::runtime_error("cannot rename the manifest " + path + ": " + std::strerror(errno));
    }
}

std::optional<Manifest> Manifest::load(const std::string& directory) {
    const std::string path = directory + "/" + manifest_name;
    std::ifstream file(path);
    if (!file) {
        return std::nullopt;
    }
    try {
        const json in = json::parse(file);
        if (in.at("sonde_manifest") != 1) {
            throw std::runtime_error("another version");
        }
        Manifest m;
        m.run = in.at("run");
        m.host = records::bytes_of(in.at("host").get<std::string>());
        m.boot = in.at("boot");
        m.pid = in.at("pid");
        m.process_start = in.at("process_start");
        m.period = in.at("period");
        const json& f = in.at("files");
        m.files.mapping = static_cast<plan::Mapping>(f.at("mapping").get<int>());
        m.files.group_size = f.at("group_size");
        m.files.count = f.at("count");
        m.files.directories = static_cast<plan::Directories>(f.at("directories").get<int>());
        m.files.name = f.at("name");
        m.tasks.threads = in.at("threads");
        m.tasks.node_of_process = in.at("node_of_process").get<std::vector<int>>();
        m.data = Dataset::from_json(in.at("data"));
        const bool sane = m.tasks.threads > 0 && m.files.count > 0 && !m.files.name.empty() &&
                          m.files.name.find('/') == std::string::npos && m.files.name[0] != '.' &&
                          (m.files.mapping != plan::Mapping::per_group || m.files.group_size > 0);
        if (!sane) {
            throw std::runtime_error("impossible values");
        }
        return m;
    } catch (const std::exception&) {
        throw std::runtime_error("the manifest " + path +
                                 " cannot be read: remove the directory by hand after a look at it");
    }
}

Removal remove_files(const std::string& directory, const Manifest& manifest, int first, int last, bool dry) {
    Removal removal;
    const Layout layout(directory, manifest.files, manifest.tasks);
    for (int task = first; task < last; ++task) {
        if (!layout.first_of_file(task)) {
            continue;
        }
        for (int k = 0; k < layout.files_per_task(); ++k) {
            const std::string path = layout.path(task, k);
            struct stat info {};
            if (::lstat(path.c_str(), &info) != 0) {
                continue;
            }
            if (!S_ISREG(info.st_mode)) {
                removal.left.push_back(path + " is not a regular file: left alone");
                continue;
            }
            if (!dry && ::unlink(path.c_str()) != 0) {
                removal.left.push_back(path + " could not be removed: " + std::strerror(errno));
                continue;
            }
            ++removal.files;
            removal.bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
        }
    }
    return removal;
}

Removal remove_run(const std::string& directory, const Manifest& manifest, bool dry) {
    Removal removal = remove_files(directory, manifest, 0, manifest.tasks.tasks(), dry);
    const Layout layout(directory, manifest.files, manifest.tasks);
    const auto drop_directory = [&](const std::string& path) {
        if (dry) {
            ++removal.directories;
        } else if (::rmdir(path.c_str()) == 0) {
            ++removal.directories;
        } else if (errno != ENOENT) {
            removal.left.push_back(path + (errno == ENOTEMPTY || errno == EEXIST
                                               ? " holds files that this run did not make: left alone"
                                               : std::string(" could not be removed: ") + std::strerror(errno)));
        }
    };
    const std::vector<std::string> directories = layout.directories();
    for (auto path = directories.rbegin(); path != directories.rend(); ++path) {
        drop_directory(*path);
    }
    if (!dry) {
        // The manifest goes last: until then a second attempt still knows what to remove.
        std::error_code ignored;
        bool only_manifest = true;
        for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
            const std::string name = entry.path().filename();
            only_manifest = only_manifest && (name == manifest_name || name == std::string(manifest_name) + ".new");
        }
        if (!only_manifest) {
            removal.left.push_back(directory + " holds files that this run did not make: left alone");
            return removal;
        }
        ::unlink((directory + "/" + manifest_name + ".new").c_str());
        ::unlink((directory + "/" + manifest_name).c_str());
    }
    drop_directory(directory);
    return removal;
}

}  // namespace sonde::phases
