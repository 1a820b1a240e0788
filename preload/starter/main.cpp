// SPDX-License-Identifier: Apache-2.0
// sonde-iobuf: starts a program under the library, as `sonde iobuf` does, without Python: for scripts that start many
// small programs. It has the options that need no lab; --from and --ffio are only in `sonde iobuf`.
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int bad_arguments = 2;
constexpr int bad_environment = 3;
constexpr const char* library_name = "libsonde-preload.so";

[[noreturn]] void exit_with_error(int code, const std::string& sentence) {
    std::fprintf(stderr, "sonde: %s\n", sentence.c_str());
    std::exit(code);
}

constexpr const char* usage =
    "Usage: sonde-iobuf [--params TEXT] [--settings FILE] [--alone] [--report] [--json DIR] [--dry-run]\n"
    "                   -- PROGRAM [ARGUMENTS]...\n"
    "\n"
    "Runs PROGRAM with a buffer between its small reads and writes and the file system, as `sonde iobuf` does,\n"
    "without starting Python.\n";

struct Options {
    std::string params;
    std::string settings;
    std::string lines;
    bool has_settings = false, alone = false, report = false, dry_run = false;
    char** command = nullptr;
};

Options read_arguments(char** argument) {
    Options options;
    for (; *argument != nullptr; ++argument) {
        const std::string word = *argument;
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const auto value = [&]() -> std::string {
            if (equals != std::string::npos) {
                return word.substr(equals + 1);
            }
            if (argument[1] == nullptr) {
                exit_with_error(bad_arguments, "Option " + name + " needs a value.");
            }
            return *++argument;
        };
        if (word == "--") {
            ++argument;
            break;
        }
        if (name == "--params") {
            options.params = value();
            options.has_settings = true;
        } else if (name == "--settings") {
            options.settings = value();
        } else if (name == "--json") {
            options.lines = value();
        } else if (word == "--alone") {
            options.alone = true;
        } else if (word == "--report") {
            options.report = true;
        } else if (word == "--dry-run") {
            options.dry_run = true;
        } else if (word == "--help") {
            std::fputs(usage, stdout);
            std::exit(0);
        } else if (word.size() > 1 && word[0] == '-') {
            exit_with_error(bad_arguments,
                            "There is no option " + name + " here; sonde-iobuf --help names those that there are.");
        } else {
            break;
        }
    }
    options.command = argument;
    return options;
}

/// Finds the library next to this program (build tree) or in ../lib (installation); $SONDE_PRELOAD overrides it.
std::string find_library() {
    if (const char* variable = std::getenv("SONDE_PRELOAD")) {
        return variable;
    }
    char program_path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program_path, sizeof(program_path) - 1);
    const std::string path(program_path, length > 0 ? static_cast<std::size_t>(length) : 0);
    const std::string folder = path.substr(0, path.rfind('/'));
    for (const char* subfolder : {"/", "/../lib/"}) {
        const std::string library = folder + subfolder + library_name;
        if (access(library.c_str(), R_OK) == 0) {
            return library;
        }
    }
    exit_with_error(bad_environment, std::string(library_name) + " is neither beside " + path + " nor in ../lib.");
}

std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return access(name.c_str(), X_OK) == 0 ? name : "";
    }
    const char* path = std::getenv("PATH");
    std::string folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
    folders += ':';
    for (std::size_t begin = 0, end = 0; (end = folders.find(':', begin)) != std::string::npos; begin = end + 1) {
        const std::string candidate = (end > begin ? folders.substr(begin, end - begin) : ".") + "/" + name;
        if (access(candidate.c_str(), X_OK) == 0) {
            return candidate;
        }
    }
    return "";
}

/// Returns whether a program has no dynamic loader (linked statically), so that nothing can be preloaded.
bool has_no_loader(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    Elf64_Ehdr head{};
    bool loader = true;
    if (fd >= 0 && pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
        std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64) {
        loader = false;
        for (unsigned i = 0; i < head.e_phnum; ++i) {
            Elf64_Phdr part{};
            loader |=
                pread(fd, &part, sizeof(part), static_cast<off_t>(head.e_phoff + i * sizeof(part))) == sizeof(part) &&
                part.p_type == PT_INTERP;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return !loader;
}

/// Adds option alone to each entry that names files; entries like %process stay unchanged.
std::string add_only_user_option(const std::string& params) {
    std::string all;
    for (std::size_t begin = 0; begin <= params.size();) {
        const std::size_t end = params.find(',', begin);
        const std::string entry = params.substr(begin, end == std::string::npos ? end : end - begin);
        const std::size_t first = entry.find_first_not_of(" \t");
        all += (all.empty() ? "" : ",") + entry;
        all += first != std::string::npos && entry[first] == '%' ? "" : ":alone";
        begin = end == std::string::npos ? params.size() + 1 : end + 1;
    }
    return all;
}

void set_variable(const char* name, const std::string& value, bool dry_run) {
    if (value.empty()) {
        return;
    }
    if (dry_run) {
        std::printf("%s=%s\n", name, value.c_str());
    } else {
        setenv(name, value.c_str(), 1);
    }
}

}  // namespace

int main(int, char** argv) {
    const Options options = read_arguments(argv + 1);
    const char* before = std::getenv("IOBUF_PARAMS");
    std::string params = options.has_settings ? options.params : before != nullptr ? before : "";
    constexpr const char* chosen_by_measurement = "*:auto";
    params = params.empty() && options.settings.empty() ? chosen_by_measurement : params;
    params = options.alone ? add_only_user_option(params.empty() ? chosen_by_measurement : params) : params;
    set_variable("IOBUF_PARAMS", params, options.dry_run);
    set_variable("SONDE_IOBUF_FILE", options.settings, options.dry_run);
    set_variable("SONDE_IOBUF_LINES", options.lines, options.dry_run);
    set_variable("IOBUF_VERBOSE", options.report ? "1" : "", options.dry_run);
    if (options.dry_run) {
        return 0;
    }
    if (*options.command == nullptr) {
        exit_with_error(bad_arguments, "Name the program to run after --: sonde-iobuf -- ./solver input.nml");
    }
    const std::string program = find_program(*options.command);
    if (program.empty()) {
        exit_with_error(bad_arguments,
                        std::string("There is no program \"") + *options.command + "\" that can be run.");
    }
    if (has_no_loader(program)) {
        exit_with_error(bad_arguments, std::string(*options.command) +
                                           " is linked statically: it never asks for a library, so its calls cannot be "
                                           "intercepted. Link it dynamically.");
    }
    const char* preloaded = std::getenv("LD_PRELOAD");
    std::string libraries = find_library();
    libraries += preloaded != nullptr && *preloaded != 0 ? std::string(" ") + preloaded : "";
    setenv("LD_PRELOAD", libraries.c_str(), 1);
    execv(program.c_str(), options.command);
    exit_with_error(bad_environment, std::string(*options.command) + " does not start: " + std::strerror(errno) + ".");
}
