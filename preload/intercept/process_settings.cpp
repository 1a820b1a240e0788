// SPDX-License-Identifier: Apache-2.0
#include "intercept/process_settings.hpp"

#include "system/memory.hpp"
#include "system/raw.hpp"
#include "system/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

extern "C" char** environ;

namespace sonde::intercept {

const char* get_initial_variable(const char* name) noexcept {
    const std::size_t length = std::strlen(name);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=' && (*entry)[length + 1] != 0) {
            return *entry + length + 1;
        }
    }
    return nullptr;
}

const char* copy_initial_variable(const char* name) noexcept {
    const char* text = get_initial_variable(name);
    const std::size_t size = text != nullptr ? std::strlen(text) + 1 : 0;
    void* copy = text != nullptr ? system::map_bytes(size) : nullptr;
    return copy != nullptr ? static_cast<const char*>(std::memcpy(copy, text, size)) : nullptr;
}

namespace {

settings::Settings process_settings;

void print_warning(const char* sentence) {
    system::Text text(2);
    text << "sonde: " << sentence << '\n';
    text.flush();
}

constexpr const char* site_file = "/etc/sonde/iobuf.conf";

/// Only root may have written the settings of the site. A site without them is the usual case.
bool is_site_file(long fd) noexcept {
    constexpr uid_t unmapped = 65534;  // root, as seen in a user namespace (bwrap) without root: no fault of the site
    struct stat status {};
    if (fd < 0 || raw::call(SYS_fstat, fd, raw::pointer_to_number(&status)) != 0) {
        return false;
    }
    const bool safe = S_ISREG(status.st_mode) && status.st_uid == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    if (!safe && status.st_uid != unmapped) {
        print_warning("/etc/sonde/iobuf.conf is not used: it must be a file that only root can write.");
    }
    return safe;
}

/// `path` null: the settings of the site.
void read_settings_file(const char* path) noexcept {
    const bool of_site = path == nullptr;
    long fd = raw::call(SYS_openat, AT_FDCWD, raw::pointer_to_number(of_site ? site_file : path), O_RDONLY | O_CLOEXEC);
    if (of_site && fd != -EACCES && !is_site_file(fd)) {
        if (fd >= 0) {
            raw::call(SYS_close, fd);
        }
        return;
    }
    constexpr std::size_t max_bytes = 65536;  // more than the entries that count
    auto* text = static_cast<char*>(system::map_bytes(max_bytes));
    long bytes_read = -1;
    std::size_t length = 0;
    while (fd >= 0 && text != nullptr && length < max_bytes - 1) {
        bytes_read =
            raw::call(SYS_read, fd, raw::pointer_to_number(text + length), static_cast<long>(max_bytes - 1 - length));
        if (bytes_read <= 0) {
            break;
        }
        length += static_cast<std::size_t>(bytes_read);
    }
    if (fd >= 0) {
        raw::call(SYS_close, fd);
    }
    if (fd < 0 || bytes_read < 0) {
        print_warning(of_site ? "/etc/sonde/iobuf.conf cannot be read; nothing of it is used."
                              : "the settings file named by SONDE_IOBUF_FILE cannot be read; nothing of it is used.");
        return;
    }
    if (length == max_bytes - 1) {
        print_warning(of_site ? "/etc/sonde/iobuf.conf is longer than 64 KiB; the rest of it is not used."
                              : "the settings file named by SONDE_IOBUF_FILE is longer than 64 KiB; the rest of it is "
                                "not used.");
    }
    settings::read_params(text, process_settings, print_warning);
}

bool is_set_to(const char* name, const char* value) noexcept {
    const char* text = get_initial_variable(name);
    return text != nullptr && std::strcmp(text, value) == 0;
}

/// Reads the program name, for only= and not= and for the summary of the process.
void describe_process() noexcept {
    static char program[4096];
    const long length = raw::call(SYS_readlinkat, AT_FDCWD, raw::pointer_to_number("/proc/self/exe"),
                                  raw::pointer_to_number(program), sizeof(program) - 1);
    process_settings.program = length > 0 ? program : nullptr;
    for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}) {
        process_settings.job = process_settings.job != nullptr ? process_settings.job : copy_initial_variable(name);
    }
    process_settings.summary = copy_initial_variable("SONDE_IOBUF_SUMMARY");
    if (process_settings.summary != nullptr && process_settings.summary[0] != '/' &&
        std::strcmp(process_settings.summary, "syslog") != 0) {
        print_warning("SONDE_IOBUF_SUMMARY is syslog or a path that begins with \"/\"; no summary is written.");
        process_settings.summary = nullptr;
    }
    for (const char* name : {"SLURM_PROCID", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"}) {
        process_settings.is_first_rank &= get_initial_variable(name) == nullptr || is_set_to(name, "0");
    }
}

/// SONDE_IOBUF selects the mode; the caller has already handled `off`.
void choose_stage() noexcept {
    const bool counts = is_set_to("SONDE_IOBUF", "count");
    if (is_set_to("SONDE_IOBUF", "verify")) {
        process_settings.stage = settings::Stage::Verify;
    } else if (counts) {
        process_settings.stage = settings::Stage::Count;
    } else if (get_initial_variable("SONDE_IOBUF") != nullptr) {
        print_warning("SONDE_IOBUF is off, count or verify; another value has no effect.");
    }
    for (std::size_t i = 0; i < process_settings.rule_count && counts; ++i) {
        settings::Rule& rule = process_settings.rules[i];
        rule.automatic = rule.may_suspend = true;
        rule.only_stdio_access = rule.mpi_disjoint = rule.direct = false;
    }
    process_settings.standard_output_bytes = counts ? 0 : process_settings.standard_output_bytes;
}

}  // namespace

settings::Settings* read_settings() noexcept {
    const char* params = get_initial_variable("IOBUF_PARAMS");
    const char* file = get_initial_variable("SONDE_IOBUF_FILE");
    const bool has_stage = is_set_to("SONDE_IOBUF", "count") || is_set_to("SONDE_IOBUF", "verify");
    const bool has_settings = params != nullptr || file != nullptr || has_stage ||
                              raw::call(SYS_faccessat, AT_FDCWD, raw::pointer_to_number(site_file), F_OK) == 0;
    if (is_set_to("SONDE_IOBUF", "off") || !has_settings) {
        return nullptr;
    }
    describe_process();
    read_settings_file(nullptr);
    if (params != nullptr) {
        settings::read_params(params, process_settings, print_warning);
    }
    if (file != nullptr) {
        read_settings_file(file);
    }
    if (params == nullptr && file == nullptr && has_stage) {
        settings::read_params("*:auto", process_settings, print_warning);
    }
    choose_stage();
    const bool all_off = std::all_of(process_settings.rules, process_settings.rules + process_settings.rule_count,
                                     [](const settings::Rule& rule) { return rule.is_disabled; });
    const bool is_off = process_settings.locked_options.is_disabled || process_settings.is_excluded ||
                        (all_off && process_settings.standard_output_bytes == 0);
    return is_off ? nullptr : &process_settings;
}

}  // namespace sonde::intercept
