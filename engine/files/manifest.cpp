// SPDX-License-Identifier: Apache-2.0
#include "files/manifest.hpp"

#include "plan/json_io.hpp"
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
std::uint64_t read_process_start(int pid) {
    const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) {
        return 0;
    }
    std::istringstream fields(line.substr(name_end + 1));
    std::string field;
    fields >> field;
    if (field == "Z" || field == "X") {  // a zombie process: it was killed and writes nothing more
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

bool belongs_to_caller_or_root(uid_t owner, const ConfinedDirectory& directory, Trust trust) {
    return owner == ::geteuid() || owner == 0 || (trust == Trust::caller && owner == directory.owner_of_new_files());
}

/// Throws UntrustedManifestError unless the open file counts.
void require_trust(const ConfinedDirectory& directory, const std::string& path, const struct stat& info, Trust trust) {
    if (trust == Trust::anybody) {
        return;
    }
    const std::string ignored = "the manifest " + path + " of " + user_text(info.st_uid) + " is ignored, ";
    const std::string advice = ": look at " + directory.path() + " and remove by hand what a run left there";
    if (!belongs_to_caller_or_root(info.st_uid, directory, trust)) {
        const std::string caller = ::geteuid() == 0 ? "" : user_text(::geteuid()) + " and of ";
        throw UntrustedManifestError(ignored + "because only manifests of " + caller +
                                     "root count: let its owner run `sonde clean`");
    }
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        throw UntrustedManifestError(ignored + "because other users can write to it" + advice);
    }
    if (trust == Trust::caller) {
        return;
    }
    if (info.st_nlink > 1) {
        throw UntrustedManifestError(ignored + "because it has another name elsewhere, which no run gives it" + advice);
    }
    if (const std::string reason = directory.explain_unsafe_directory(); !reason.empty()) {
        throw UntrustedManifestError(ignored + "because its directory " + reason + advice + ", or run `chmod go-w " +
                                     directory.path() + "` and clean again");
    }
}

/// The text of a manifest, not read through a symbolic link; empty when there is none.
std::optional<std::string> read_manifest(const ConfinedDirectory& directory, const char* name, Trust trust) {
    constexpr off_t longest = 1 << 28;
    // O_NONBLOCK: somebody may have put a pipe here, which would be waited for.
    const Descriptor file = directory.open_file(name, O_RDONLY | O_NONBLOCK);
    if (*file == -ENOENT) {
        return std::nullopt;
    }
    struct stat info {};
    if (*file < 0 || ::fstat(*file, &info) != 0 || !S_ISREG(info.st_mode)) {
        throw std::runtime_error("not a file");
    }
    require_trust(directory, directory.path() + "/" + name, info, trust);
    if (info.st_size > longest) {
        throw std::runtime_error("too long");
    }
    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t length = 0;
    for (ssize_t count = 1; length < text.size() && count > 0; length += static_cast<std::size_t>(count)) {
        count = std::max<ssize_t>(0, ::read(*file, text.data() + length, text.size() - length));
    }
    text.resize(length);
    return text;
}

/// Writes a draft that did not exist before, so that nobody else holds it open.
void write_draft(const ConfinedDirectory& directory, const std::string& text) {
    directory.unlink(manifest_draft_name);  // of a run that was killed while it wrote
    const Descriptor file = directory.create_file(manifest_draft_name, 0644);
    bool is_written = *file >= 0;
    int code = is_written ? 0 : -*file;
    for (std::size_t done = 0; is_written && done < text.size();) {
        const ssize_t count = ::write(*file, text.data() + done, text.size() - done);
        is_written = count > 0;
        done += is_written ? static_cast<std::size_t>(count) : 0;
    }
    is_written = is_written && ::fsync(*file) == 0;
    if (!is_written) {
        code = code != 0 ? code : errno;
        const std::string why =
            "cannot write the manifest " + directory.path() + "/" + manifest_name + ": " + std::strerror(code);
        if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
            throw NoSpaceError(why);
        }
        throw std::runtime_error(why);
    }
}

}  // namespace

void Manifest::stamp_this_process() {
    host = host_name();
    boot_id = first_line("/proc/sys/kernel/random/boot_id");
    pid_namespace_number = pid_namespace();
    pid = getpid();
    process_start = read_process_start(pid);
}

WriterState Manifest::check_writer_liveness() const {
    if (host != host_name()) {
        return WriterState::elsewhere;
    }
    if (boot_id != first_line("/proc/sys/kernel/random/boot_id")) {
        return WriterState::ended;
    }
    if (pid_namespace_number != pid_namespace()) {
        return WriterState::elsewhere;
    }
    return process_start != 0 && read_process_start(pid) == process_start ? WriterState::alive : WriterState::ended;
}

std::string Manifest::to_text() const {
    const json out{{"sonde_manifest", 1},
                   {"run", run_id},
                   {"host", records::to_json_text(host)},
                   {"boot", boot_id},
                   {"pid_space", pid_namespace_number},
                   {"pid", pid},
                   {"process_start", process_start},
                   {"period", payload_period},
                   {"epoch_ns", epoch_ns},
                   {"half_rates", {{"write", last_write_rate}, {"read", last_read_rate}}},
                   {"existed_before", directory_existed_before},
                   {"files",
                    {{"mapping", static_cast<int>(files.mapping)},
                     {"group_size", files.group_size},
                     {"count", files.count},
                     {"directories", static_cast<int>(files.directories)},
                     {"name", files.name},
                     {"across", files.across}}},
                   {"threads", tasks.threads_per_process},
                   {"node_of_process", tasks.node_of_process},
                   {"data", data.to_json()},
                   {"has_data", has_data},
                   {"trees", trees.to_json()}};
    return plan::serialize_json(out) + "\n";
}

void Manifest::save(const ConfinedDirectory& directory) const {
    try {
        write_draft(directory, to_text());
    } catch (...) {
        directory.unlink(manifest_draft_name);  // half a manifest says nothing, and the one before it still stands
        throw;
    }
    if (const int failed = directory.rename(manifest_draft_name, manifest_name); failed != 0) {
        throw std::runtime_error("cannot rename the manifest " + directory.path() + "/" + manifest_name + ": " +
                                 std::strerror(-failed));
    }
    directory.synchronize();  // the name as well; where directories cannot be synced, the file is all there is
}

namespace {

template <class Enum>
Enum to_enumerator(const json& value, Enum last) {
    const int number = value.get<int>();
    if (number < 0 || number > static_cast<int>(last)) {
        throw std::runtime_error("impossible values");
    }
    return static_cast<Enum>(number);
}

/// Returns whether the engine can have written these values. An edited manifest may contain others, and each of them
/// would cause wrong removals.
bool is_plausible(const Manifest& m) {
    const plan::Files& f = m.files;
    constexpr std::size_t max_processes = 1U << 24U;
    const auto& nodes = m.tasks.node_of_process;
    const bool map = m.tasks.threads_per_process > 0 && m.tasks.threads_per_process <= 4096 && !nodes.empty() &&
                     nodes.size() <= max_processes &&
                     nodes.size() * static_cast<std::size_t>(m.tasks.threads_per_process) <= INT32_MAX &&
                     std::all_of(nodes.begin(), nodes.end(),
                                 [&](int node) { return node >= 0 && static_cast<std::size_t>(node) < nodes.size(); });
    const bool names = !f.name.empty() && f.name.size() <= 128 && f.name[0] != '.' &&
                       f.name.find('/') == std::string::npos && f.name.find('\0') == std::string::npos;
    const bool places = std::all_of(f.across.begin(), f.across.end(), [](const std::string& path) {
        return !path.empty() && path[0] == '/' && path.find('\0') == std::string::npos;
    });
    const bool counts = f.count > 0 && f.count <= 100'000'000 && f.group_size >= 0 &&
                        (f.mapping != plan::Mapping::per_group || f.group_size > 0);
    const auto& states = m.data.states();
    return map && names && places && counts && std::all_of(states.begin(), states.end(), [&](const DataState& state) {
               return state.access.transfer > 0 && state.access.block >= state.access.transfer && state.segments > 0 &&
                      state.operations_by_task.size() == static_cast<std::size_t>(m.tasks.tasks()) &&
                      std::all_of(state.file_indices.begin(), state.file_indices.end(),
                                  [&](int k) { return k >= 0 && k < f.count; });
           });
}

/// JSON in which only rates are fractions: to convert another one into a whole number may be undefined.
json parse_document(const std::string& text) {
    constexpr int deepest = 16;
    std::string key;
    return plan::parse_json(text, [&key](int depth, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::key) {
            key = parsed.get<std::string>();
        }
        if (depth > deepest ||
            (event == json::parse_event_t::value && parsed.is_number_float() && key != "write" && key != "read")) {
            throw std::runtime_error("impossible values");
        }
        return true;
    });
}

}  // namespace

Manifest Manifest::parse(const std::string& text) {
    const json in = parse_document(text);
    if (in.at("sonde_manifest") != 1) {
        throw std::runtime_error("another version");
    }
    Manifest m;
    m.run_id = in.at("run");
    m.host = records::from_json_text(in.at("host").get<std::string>());
    m.boot_id = in.at("boot");
    m.pid_namespace_number = in.value("pid_space", std::string());
    m.pid = in.at("pid");
    m.process_start = in.at("process_start");
    m.payload_period = in.at("period");
    m.epoch_ns = in.value("epoch_ns", std::int64_t{0});
    if (in.contains("half_rates")) {
        m.last_write_rate = in.at("half_rates").at("write");
        m.last_read_rate = in.at("half_rates").at("read");
    }
    m.directory_existed_before = in.value("existed_before", false);
    const json& f = in.at("files");
    m.files.mapping = to_enumerator(f.at("mapping"), plan::Mapping::many);
    m.files.group_size = f.at("group_size");
    m.files.count = f.at("count");
    m.files.directories = to_enumerator(f.at("directories"), plan::DirectoryMapping::per_node);
    m.files.name = f.at("name");
    m.files.across = f.value("across", std::vector<std::string>{});
    m.tasks.threads_per_process = in.at("threads");
    m.tasks.node_of_process = in.at("node_of_process").get<std::vector<int>>();
    m.data = Dataset::from_json(in.at("data"));
    m.has_data = in.value("has_data", true);
    if (in.contains("trees")) {
        const std::size_t all =
            static_cast<std::size_t>(std::max(0, m.tasks.threads_per_process)) * m.tasks.node_of_process.size();
        m.trees = Forest::from_json(in.at("trees"), static_cast<int>(std::min<std::size_t>(all, INT32_MAX)));
    }
    if (!is_plausible(m)) {
        throw std::runtime_error("impossible values");
    }
    return m;
}

std::optional<Manifest> Manifest::load(const ConfinedDirectory& directory, Trust trust) {
    try {
        std::optional<std::string> text = read_manifest(directory, manifest_name, trust);
        if (!text) {
            // Killed while the very first one was written.
            text = read_manifest(directory, manifest_draft_name, trust);
        }
        return text ? std::optional<Manifest>(parse(*text)) : std::nullopt;
    } catch (const UntrustedManifestError&) {
        throw;
    } catch (const std::exception&) {
        throw std::runtime_error(
            "the manifest " + directory.path() + "/" + manifest_name +
            " is damaged or was not written by Sonde, so it does not say what may be removed: look "
            "at the directory and remove it by hand");
    }
}

void Manifest::remove(const ConfinedDirectory& directory) {
    directory.unlink(manifest_name);
}

}  // namespace sonde::files
