// SPDX-License-Identifier: Apache-2.0
// The command line of the mount: the thinnest layer.
#include "mounted/service.hpp"
#include "system/given_file.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace sonde::simulate;

constexpr int exit_plan = 2, exit_environment = 3;

/// Something on this machine is missing or refused.
struct PlaceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct MountWords {
    std::string system, mount, store;
    std::vector<std::string> faults;
    bool free_of_cost = false;
    Pace::Options pace;
    MountOptions options;
};

int complain(const char* why, int code) {
    std::fprintf(stderr, "sonde-mount: %s\n", why);
    return code;
}

/// The store, open. It is empty or was one before, so that nobody's files are taken for ours; a file says so.
int open_store(const std::string& path, const std::string& system) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        throw PlaceError("directory " + path + " cannot be opened: " + std::strerror(errno));
    }
    if (::faccessat(fd, own_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        return fd;
    }
    if (!std::filesystem::is_empty(path)) {
        ::close(fd);
        throw SiteError("directory " + path +
                        " has files that no mount of this kind has stored; name an empty one, or one used before");
    }
    const int mark = ::openat(fd, own_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const std::string text = "The files beside this one were stored by `sonde mount` of system " + system + ".\n";
    if (mark < 0 || ::write(mark, text.data(), text.size()) < 0) {
        throw PlaceError("directory " + path + " cannot be written: " + std::strerror(errno));
    }
    ::close(mark);
    return fd;
}

std::string about(const MountWords& words, const Pace& pace) {
    const SiteModel& site = pace.site();
    return nlohmann::json{{"system", site.system},          {"mount", site.mount},
                          {"file_system", site.fs.id},      {"kind", site.fs.kind},
                          {"targets", site.targets.size()}, {"nodes", words.options.nodes},
                          {"store", words.store},           {"paced", pace.paced()},
                          {"speed", pace.speed()},          {"kernel_cache", words.options.kernel_cache},
                          {"process", ::getpid()},          {"assumptions", site.assumptions}}
               .dump(2) +
           "\n";
}

/// Each file that the kernel knows is a descriptor here.
void allow_many_files() {
    struct rlimit limit {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const struct rlimit wanted { 1U << 20U, 1U << 20U };
    if (::setrlimit(RLIMIT_NOFILE, &wanted) != 0) {  // only root may have more than the hard limit
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int mount(MountWords& words) {
    SiteModel site = read_site(text_of_file(words.system, "system"), words.mount);
    if (words.options.nodes > site.clients.size()) {
        throw SiteError("--nodes " + std::to_string(words.options.nodes) + ": mount " + site.mount + " of system " +
                        site.system + " is on " + std::to_string(site.clients.size()) + " nodes");
    }
    if (words.options.kernel_cache) {  // what the kernel keeps is not kept once more
        for (ClientSite& client : site.clients) {
            client.page_cache = 0;
            client.read_ahead = 0;
        }
    }
    std::vector<Fault> faults;
    for (const std::string& text : words.faults) {
        faults.push_back(parse_fault(text));
        check_fault(faults.back(), site);
    }
    if (::access("/dev/fuse", R_OK | W_OK) != 0) {
        throw PlaceError("/dev/fuse cannot be used (" + std::string(std::strerror(errno)) +
                         "): the kernel module fuse is not loaded, or this container may not use it");
    }
    words.store = words.store.empty() ? words.options.directory : words.store;
    const int root = open_store(words.store, site.system);
    allow_many_files();
    ::umask(0);
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // sleeps end when they should; threads inherit it
    words.pace.paced = !words.free_of_cost;
    Pace pace(std::move(site), words.pace);
    Store store(root, pace);
    ControlFiles controls(pace, words.options.nodes, [&] { return about(words, pace); });
    for (const Fault& fault : faults) {
        ControlFiles::find(controls.root(), "faults")->take(fault.text());
    }
    Service service(pace, store, controls, words.options);
    return service.run();
}

/// Writes a line into a control file; what it answers when it refuses it is the sentence.
int tell(const std::string& directory, const std::string& line) {
    const std::string path = directory + "/" + own_name + "/faults";
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        throw SiteError(directory + " is no mounted machine: " + path + " cannot be opened (" + std::strerror(errno) +
                        "); `sonde mount --system FILE " + directory + "` makes it one");
    }
    const ssize_t written = ::write(fd, line.data(), line.size());
    char why[4096];
    const ssize_t length = written < 0 ? ::pread(fd, why, sizeof why - 1, 0) : 0;
    ::close(fd);
    if (written < 0) {
        std::string text(why, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
        text.erase(text.find_last_not_of('\n') + 1);
        throw SiteError(text);
    }
    return 0;
}

int run_mount(int argc, char** argv) {
    CLI::App app("Shows a described machine as a file system, in real time.", "sonde-mount");
    app.require_subcommand(1);
    MountWords words;
    CLI::App* mount_command = app.add_subcommand("mount", "mount a described machine on a directory");
    mount_command->add_option("directory", words.options.directory, "where it appears")->required();
    mount_command->add_option("--system", words.system, "resolved system (JSON)")->required();
    mount_command->add_option("--mount", words.mount, "mount or file system; default: the first that can be simulated");
    mount_command->add_option("--store", words.store,
                              "where the bytes lie; default: in the directory, below the mount");
    mount_command->add_option("--nodes", words.options.nodes, "nodes that programs are dealt to")
        ->check(CLI::Range(1U, 10000000U));
    mount_command->add_option("--seed", words.pace.machine.seed, "of everything that is left to chance");
    mount_command->add_option("--speed", words.pace.speed, "seconds of the machine in a second of the clock")
        ->check(CLI::Range(1e-6, 1e3));
    double lead_s = seconds(words.pace.lead);
    mount_command->add_option("--lead", lead_s, "seconds from an answer to the next call that are not the program's")
        ->check(CLI::Range(0.0, 1.0));
    double spin_s = 0;
    mount_command
        ->add_option("--spin", spin_s,
                     "seconds to look out for the next call before a thread sleeps; takes a processor")
        ->check(CLI::Range(0.0, 1.0));
    mount_command->add_option("--fault", words.faults, "what is wrong from the beginning; may be repeated")
        ->expected(1)
        ->take_all();
    mount_command->add_flag("--kernel-cache", words.options.kernel_cache,
                            "the kernel keeps pages; files may be mapped");
    mount_command->add_flag("--allow-other", words.options.allow_other, "other users may use it");
    mount_command->add_flag("--free-of-cost", words.free_of_cost, "calls end when their bytes are stored");
    mount_command->add_flag("--foreground", words.options.foreground, "do not go into the background");
    CLI::App* tell_command = app.add_subcommand("tell", "tell a mounted machine what is wrong with it");
    std::string line;
    tell_command->add_option("directory", words.options.directory, "where it is mounted")->required();
    tell_command->add_option("line", line, "a fault, `end` and a fault, or clear")->required();
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& error) {
        return complain((std::string(error.what()) + "; `sonde-mount --help` explains").c_str(), exit_plan);
    }
    words.pace.lead = time_of(lead_s);
    words.options.spin = time_of(spin_s);
    try {
        return tell_command->parsed() ? tell(words.options.directory, line) : mount(words);
    } catch (const SiteError& error) {
        return complain(error.what(), exit_plan);
    } catch (const std::exception& error) {
        return complain(error.what(), exit_environment);
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run_mount(argc, argv);
    } catch (...) {
        // Nothing is expected to come here; if it does, it is not a reason to abort.
        static_cast<void>(std::fputs("sonde-mount: an unknown failure\n", stderr));
    }
    return exit_environment;
}
