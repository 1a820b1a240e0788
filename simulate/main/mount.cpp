// SPDX-License-Identifier: Apache-2.0
// The command line of the mount: the thinnest layer.
#include "mounted/service.hpp"
#include "system/system_model_reader.hpp"

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

/// A resource of this computer is missing or access to it is denied.
struct MountError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct MountArguments {
    std::string system, mount, store;
    std::vector<std::string> faults;
    bool has_no_cost = false;
    RealTimeOptions real_time;
    MountOptions options;
};

int print_error(const char* why, int code) {
    std::fprintf(stderr, "sonde-mount: %s\n", why);
    return code;
}

/// Opens the store. It must be empty or marked as a store, so that other files are never used as one.
int open_store(const std::string& path, const std::string& system) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        throw MountError("directory " + path + " cannot be opened: " + std::strerror(errno));
    }
    if (::faccessat(fd, control_directory_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        return fd;
    }
    if (!std::filesystem::is_empty(path)) {
        ::close(fd);
        throw SystemModelError(
            "directory " + path +
            " has files that no mount of this kind has stored; name an empty one, or one used before");
    }
    const int mark = ::openat(fd, control_directory_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const std::string text = "The files beside this one were stored by `sonde mount` of system " + system + ".\n";
    if (mark < 0 || ::write(mark, text.data(), text.size()) < 0) {
        throw MountError("directory " + path + " cannot be written: " + std::strerror(errno));
    }
    ::close(mark);
    return fd;
}

std::string describe_mount(const MountArguments& arguments, const RealTimeMachine& machine) {
    const SystemModel& site = machine.system();
    return nlohmann::json{{"system", site.system},
                          {"mount", site.mount},
                          {"file_system", site.file_system.id},
                          {"kind", site.file_system.kind},
                          {"targets", site.targets.size()},
                          {"nodes", arguments.options.nodes},
                          {"store", arguments.store},
                          {"paced", machine.is_paced()},
                          {"speed", machine.speed()},
                          {"kernel_cache", arguments.options.kernel_cache},
                          {"process", ::getpid()},
                          {"assumptions", site.assumptions}}
               .dump(2) +
           "\n";
}

/// Raises the limit of open files: each file that the kernel has looked up needs a descriptor.
void raise_file_limit() {
    struct rlimit limit {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const struct rlimit requested { 1U << 20U, 1U << 20U };
    if (::setrlimit(RLIMIT_NOFILE, &requested) != 0) {  // only root may have more than the hard limit
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int mount(MountArguments& arguments) {
    SystemModel site = read_system_model(read_text_file(arguments.system, "system"), arguments.mount);
    if (arguments.options.nodes > site.clients.size()) {
        throw SystemModelError("--nodes " + std::to_string(arguments.options.nodes) + ": mount " + site.mount +
                               " of system " + site.system + " is on " + std::to_string(site.clients.size()) +
                               " nodes");
    }
    if (arguments.options.kernel_cache) {  // the kernel caches instead of the machine
        for (ClientDescription& client : site.clients) {
            client.page_cache_bytes = 0;
            client.read_ahead_bytes = 0;
        }
    }
    std::vector<Fault> faults;
    for (const std::string& text : arguments.faults) {
        faults.push_back(parse_fault(text));
        check_fault(faults.back(), site);
    }
    if (::access("/dev/fuse", R_OK | W_OK) != 0) {
        throw MountError("/dev/fuse cannot be used (" + std::string(std::strerror(errno)) +
                         "): the kernel module fuse is not loaded, or this container may not use it");
    }
    arguments.store = arguments.store.empty() ? arguments.options.directory : arguments.store;
    const int root = open_store(arguments.store, site.system);
    raise_file_limit();
    ::umask(0);
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // precise sleeps; threads inherit the value
    arguments.real_time.is_paced = !arguments.has_no_cost;
    RealTimeMachine machine(std::move(site), arguments.real_time);
    Store store(root, machine);
    ControlFiles controls(machine, arguments.options.nodes, [&] { return describe_mount(arguments, machine); });
    for (const Fault& fault : faults) {
        ControlFiles::find(controls.root(), "faults")->write_line(fault.to_text());
    }
    FuseService service(machine, store, controls, arguments.options);
    return service.run();
}

/// Writes a line into a control file. Throws SystemModelError with the reason when the line is rejected.
int write_fault(const std::string& directory, const std::string& line) {
    const std::string path = directory + "/" + control_directory_name + "/faults";
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        throw SystemModelError(directory + " is no mounted machine: " + path + " cannot be opened (" +
                               std::strerror(errno) + "); `sonde mount --system FILE " + directory + "` makes it one");
    }
    const ssize_t written = ::write(fd, line.data(), line.size());
    char why[4096];
    const ssize_t length = written < 0 ? ::pread(fd, why, sizeof why - 1, 0) : 0;
    ::close(fd);
    if (written < 0) {
        std::string text(why, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
        text.erase(text.find_last_not_of('\n') + 1);
        throw SystemModelError(text);
    }
    return 0;
}

int run_mount(int argc, char** argv) {
    CLI::App app("Shows a described machine as a file system, in real time.", "sonde-mount");
    app.require_subcommand(1);
    MountArguments arguments;
    CLI::App* mount_command = app.add_subcommand("mount", "mount a described machine on a directory");
    mount_command->add_option("directory", arguments.options.directory, "where it appears")->required();
    mount_command->add_option("--system", arguments.system, "resolved system (JSON)")->required();
    mount_command->add_option("--mount", arguments.mount,
                              "mount or file system; default: the first that can be simulated");
    mount_command->add_option("--store", arguments.store,
                              "where the bytes lie; default: in the directory, below the mount");
    mount_command->add_option("--nodes", arguments.options.nodes, "nodes that programs are dealt to")
        ->check(CLI::Range(1U, 10000000U));
    mount_command->add_option("--seed", arguments.real_time.machine.seed, "of everything that is left to chance");
    mount_command->add_option("--speed", arguments.real_time.speed, "seconds of the machine in a second of the clock")
        ->check(CLI::Range(1e-6, 1e3));
    double lead_s = to_seconds(arguments.real_time.lead_time);
    mount_command->add_option("--lead", lead_s, "seconds from an answer to the next call that are not the program's")
        ->check(CLI::Range(0.0, 1.0));
    double spin_s = 0;
    mount_command
        ->add_option("--spin", spin_s,
                     "seconds to look out for the next call before a thread sleeps; takes a processor")
        ->check(CLI::Range(0.0, 1.0));
    mount_command->add_option("--fault", arguments.faults, "what is wrong from the beginning; may be repeated")
        ->expected(1)
        ->take_all();
    mount_command->add_flag("--kernel-cache", arguments.options.kernel_cache,
                            "the kernel keeps pages; files may be mapped");
    mount_command->add_flag("--allow-other", arguments.options.allow_other, "other users may use it");
    mount_command->add_flag("--no-cost", arguments.has_no_cost, "calls end when their bytes are stored");
    mount_command->add_option("--log", arguments.options.log, "file for messages from the background");
    mount_command->add_flag("--foreground", arguments.options.foreground, "do not go into the background");
    CLI::App* tell_command = app.add_subcommand("tell", "tell a mounted machine what is wrong with it");
    std::string line;
    tell_command->add_option("directory", arguments.options.directory, "where it is mounted")->required();
    tell_command->add_option("line", line, "a fault, `end` and a fault, or clear")->required();
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& error) {
        return print_error((std::string(error.what()) + "; `sonde-mount --help` explains").c_str(), exit_plan);
    }
    arguments.real_time.lead_time = seconds_to_time(lead_s);
    arguments.options.spin_time = seconds_to_time(spin_s);
    try {
        return tell_command->parsed() ? write_fault(arguments.options.directory, line) : mount(arguments);
    } catch (const SystemModelError& error) {
        return print_error(error.what(), exit_plan);
    } catch (const std::exception& error) {
        return print_error(error.what(), exit_environment);
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run_mount(argc, argv);
    } catch (...) {
        // No exception should reach this point; if one does, the program must not abort.
        static_cast<void>(std::fputs("sonde-mount: an unknown failure\n", stderr));
    }
    return exit_environment;
}
