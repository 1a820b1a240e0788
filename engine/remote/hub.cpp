// SPDX-License-Identifier: Apache-2.0
#include "remote/hub.hpp"

#include "ranks/fork.hpp"
#include "ranks/frame_link.hpp"
#include "ranks/launcher.hpp"
#include "ranks/team_error.hpp"
#include "records/text.hpp"
#include "remote/start_order.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

extern char** environ;

namespace sonde::remote {
namespace {

using ranks::all_processes;
using ranks::exit_environment;
using ranks::exit_failed;
using ranks::exit_interrupted;
using ranks::Frame;
using ranks::FrameKind;
using ranks::FrameLink;
using ranks::TeamError;

/// A text as one word of a shell.
std::string quote(const std::string& text) {
    std::string quoted = "'";
    for (const char character : text) {
        quoted += character == '\'' ? "'\\''" : std::string(1, character);
    }
    return quoted + "'";
}

/// The variables of this process that the processes of a run need. Others describe this host or login.
std::vector<std::string> list_forwarded_variables() {
    std::vector<std::string> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        for (const std::string_view begin : {"SONDE_", "IOBUF_", "AWS_", "LD_PRELOAD=", "LD_LIBRARY_PATH="}) {
            if (text.starts_with(begin) && text.find('=') != std::string_view::npos) {
                variables.emplace_back(text);
            }
        }
    }
    return variables;
}

struct Host {
    std::string name;
    FrameLink link;
    pid_t ssh_process = -1;
    int first_process = 0, process_count = 0;  ///< its processes
    bool is_ready = false;                     ///< its node command has greeted
};

class SshHub {
 public:
    explicit SshHub(const SshRequest& request)
        : request_(request), codes_(static_cast<std::size_t>(request.processes), -1) {
        sigset_t awaited;
        sigemptyset(&awaited);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
            sigaddset(&awaited, signal);
        }
        sigprocmask(SIG_BLOCK, &awaited, &old_mask_);
        signals_ = signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK);
    }

    int run() {
        const std::vector<int> counts = divide_processes(request_.processes, static_cast<int>(request_.hosts.size()));
        int first = 0;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            start_host(request_.hosts[i], first, counts[i]);
            first += counts[i];
        }
        if (!wait_for_greetings()) {
            end_all_ssh();
            return was_interrupted_ ? exit_interrupted : exit_environment;
        }
        send_start_orders();
        while (std::any_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.link.is_open(); })) {
            wait_for_hosts();
            forward_signals();
            for (Host& host : hosts_) {
                forward_from(host);
            }
            for (Host& host : hosts_) {
                if (host.link.is_open()) {
                    host.link.flush();  // of a host that is gone, forward_from() learns
                }
            }
        }
        for (const Host& host : hosts_) {
            waitpid(host.ssh_process, nullptr, 0);
        }
        return ranks::select_worst_status(codes_);
    }

 private:
    void start_host(const std::string& name, int first, int count);
    bool wait_for_greetings();
    bool read_greeting(Host& host);
    void report_missing_greeting(Host& host);
    void send_start_orders();
    void wait_for_hosts();
    void forward_signals();
    void forward_from(Host& host);
    void forward(const Frame& frame, const Host& origin);
    bool has_ended(const Host& host) const;
    void handle_lost_host(Host& host);
    void end_all_ssh();

    const SshRequest& request_;
    std::vector<Host> hosts_;
    std::vector<int> codes_;  ///< of each process; -1 while it runs
    int signals_ = -1;
    bool was_interrupted_ = false;
    sigset_t old_mask_{};
};

void SshHub::start_host(const std::string& name, int first, int count) {
    std::array<int, 2> to_host{}, from_host{};
    if (pipe2(to_host.data(), O_CLOEXEC) != 0 || pipe2(from_host.data(), O_CLOEXEC) != 0) {
        throw TeamError(std::string("cannot start ssh: ") + std::strerror(errno));
    }
    const pid_t parent = getpid();
    const pid_t ssh = fork();
    if (ssh < 0) {
        throw TeamError(std::string("cannot start ssh: ") + std::strerror(errno));
    }
    if (ssh == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) {
            _exit(exit_environment);
        }
        setsid();  // a Ctrl-C of the terminal is for the hub, which lets the processes end in good order
        sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
        dup2(to_host[0], STDIN_FILENO);
        dup2(from_host[1], STDOUT_FILENO);
        std::vector<std::string> command = request_.shell;
        command.push_back(name);
        command.push_back("exec " + quote(engine_path()) + " ssh-node");
        std::vector<char*> arguments;
        for (std::string& argument : command) {
            arguments.push_back(argument.data());
        }
        arguments.push_back(nullptr);
        execvp(arguments[0], arguments.data());
        records::print_error("cannot start " + request_.shell.front() + ": " + std::strerror(errno));
        _exit(exit_environment);
    }
    close(to_host[0]);
    close(from_host[1]);
    hosts_.push_back(Host{name, FrameLink(from_host[0], to_host[1]), ssh, first, count, false});
}

/// Returns false when a host does not answer; nothing was started then.
bool SshHub::wait_for_greetings() {
    for (;;) {
        bool all_ready = true;
        for (Host& host : hosts_) {
            if (!host.is_ready && !read_greeting(host)) {
                return false;
            }
            all_ready = all_ready && host.is_ready;
        }
        if (all_ready) {
            return true;
        }
        wait_for_hosts();
        signalfd_siginfo info{};
        if (read(signals_, &info, sizeof info) == sizeof info) {
            was_interrupted_ = true;
            return false;
        }
    }
}

/// Skips what a login shell prints before the greeting. Returns false at the end of the connection or when another
/// version of the engine greets.
bool SshHub::read_greeting(Host& host) {
    const bool is_open = host.link.read_available();
    while (const std::optional<std::string> line = host.link.take_line()) {
        if (*line == node_greeting()) {
            host.is_ready = true;
            return true;
        }
        if (const std::string version = read_version(*line); !version.empty()) {
            records::print_error(host.name + " would run engine " + version + ", and " + ranks::host_name() +
                                 " engine " SONDE_VERSION
                                 ": one run needs the same engine everywhere; install it anew there");
            return false;
        }
    }
    if (!is_open) {
        report_missing_greeting(host);
    }
    return is_open;
}

void SshHub::report_missing_greeting(Host& host) {
    int status = 0;
    waitpid(host.ssh_process, &status, 0);
    host.ssh_process = -1;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    constexpr int not_found = 127, not_executable = 126;
    std::string reason = "could not be reached: `" + request_.shell.front() + " " + host.name + "` ended with code " +
                         std::to_string(code) + "; try it by hand, it must work without a password";
    if (code == not_found || code == not_executable) {
        reason = "cannot start " + engine_path() + ": install the same version of Sonde there, at the same path";
    }
    records::print_error(host.name + " " + reason);
}

void SshHub::send_start_orders() {
    std::array<char, PATH_MAX> directory{};
    if (getcwd(directory.data(), directory.size()) == nullptr) {
        throw TeamError(std::string("cannot read the name of the working directory: ") + std::strerror(errno));
    }
    StartOrder order;
    order.processes = request_.processes;
    order.nodes = static_cast<int>(hosts_.size());
    order.job = "ssh-" + ranks::host_name() + "-" + std::to_string(getpid()) + "-" + std::to_string(time(nullptr));
    order.directory = directory.data();
    order.command = request_.command;
    order.variables = list_forwarded_variables();
    for (Host& host : hosts_) {
        order.first_process = host.first_process;
        order.process_count = host.process_count;
        order.host = host.name;
        host.link.append({FrameKind::start, all_processes, all_processes, serialize(order)});
        host.link.flush();
    }
}

void SshHub::wait_for_hosts() {
    std::vector<pollfd> events{{signals_, POLLIN, 0}};
    for (const Host& host : hosts_) {
        if (host.link.is_open()) {
            events.push_back({host.link.input(), POLLIN, 0});
            if (host.link.has_unsent()) {
                events.push_back({host.link.output(), POLLOUT, 0});
            }
        }
    }
    poll(events.data(), events.size(), -1);
}

void SshHub::forward_signals() {
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof info) == sizeof info) {
        for (Host& host : hosts_) {
            if (host.link.is_open()) {
                host.link.append({FrameKind::signal, all_processes, all_processes, std::to_string(info.ssi_signo)});
            }
        }
    }
}

void SshHub::forward_from(Host& host) {
    if (!host.link.is_open()) {
        return;
    }
    const bool is_open = host.link.read_available();
    while (const std::optional<Frame> frame = host.link.take_frame()) {
        forward(*frame, host);
    }
    if (!is_open) {
        handle_lost_host(host);
    }
}

void SshHub::forward(const Frame& frame, const Host& origin) {
    if (frame.kind == FrameKind::output) {
        std::fwrite(frame.content.data(), 1, frame.content.size(), stdout);
        std::fflush(stdout);
        return;
    }
    if (frame.kind == FrameKind::ended && frame.from >= 0 && frame.from < request_.processes) {
        codes_[static_cast<std::size_t>(frame.from)] = std::atoi(frame.content.c_str());
    }
    for (Host& host : hosts_) {
        // A remote shell that passes its input on through another program ends only when the input does.
        if (host.link.is_open() && has_ended(host)) {
            host.link.close_output();
        }
        const bool is_there = frame.to >= host.first_process && frame.to < host.first_process + host.process_count;
        if (host.link.is_open() && &host != &origin && (is_there || frame.to == all_processes)) {
            host.link.append(frame);
        }
    }
}

bool SshHub::has_ended(const Host& host) const {
    const auto first = codes_.begin() + host.first_process;
    return std::all_of(first, first + host.process_count, [](int code) { return code >= 0; });
}

/// Handles the end of a connection: normal if all processes of the host have ended, else it notifies the others.
void SshHub::handle_lost_host(Host& host) {
    host.link.close();
    bool is_lost = false;
    for (int process = host.first_process; process < host.first_process + host.process_count; ++process) {
        if (codes_[static_cast<std::size_t>(process)] < 0) {
            is_lost = true;
            forward({FrameKind::ended, process, all_processes, std::to_string(exit_failed)}, host);
        }
    }
    if (is_lost) {
        records::print_error("the connection to " + host.name + " ended while " + std::to_string(host.process_count) +
                             " processes ran there; finished phases are kept");
    }
}

void SshHub::end_all_ssh() {
    for (Host& host : hosts_) {
        host.link.close();  // node commands end with it
        if (host.ssh_process > 0) {
            kill(host.ssh_process, SIGTERM);
            waitpid(host.ssh_process, nullptr, 0);
        }
    }
}

}  // namespace

int run_over_ssh(const SshRequest& request) {
    signal(SIGPIPE, SIG_IGN);
    return SshHub(request).run();
}

}  // namespace sonde::remote
