// SPDX-License-Identifier: Apache-2.0
#include "remote/node_command.hpp"

#include "ranks/fork.hpp"
#include "ranks/frame_link.hpp"
#include "ranks/ssh_module.hpp"
#include "ranks/team_error.hpp"
#include "records/text.hpp"
#include "remote/start_order.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

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

/// Moves standard input and output away from where anything else could use them: they are the connection to the hub.
FrameLink take_standard_streams() {
    const int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    close(nothing);
    return {in, out};
}

/// Waits for the order. Nothing: the hub is gone.
std::optional<Frame> wait_for_order(FrameLink& hub) {
    bool is_open = true;
    while (is_open) {
        pollfd ready{hub.input(), POLLIN, 0};
        poll(&ready, 1, -1);
        is_open = hub.read_available();
        if (std::optional<Frame> frame = hub.take_frame()) {
            return frame;
        }
    }
    return std::nullopt;
}

class SshNode {
 public:
    SshNode(FrameLink hub, StartOrder order) : hub_(std::move(hub)), order_(std::move(order)) {
        sigset_t awaited;
        sigemptyset(&awaited);
        for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) {
            sigaddset(&awaited, signal);
        }
        sigprocmask(SIG_BLOCK, &awaited, &old_mask_);
        signals_ = signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK);
        std::array<int, 2> ends{};
        if (signals_ < 0 || pipe2(ends.data(), O_CLOEXEC) != 0) {
            throw TeamError(std::string("cannot start processes: ") + std::strerror(errno));
        }
        output_ = ends[0];
        output_end_ = ends[1];
        fcntl(output_, F_SETFL, O_NONBLOCK);
    }

    int run() {
        for (int local_index = 0; local_index < order_.process_count; ++local_index) {
            start_process(local_index);
        }
        close(output_end_);
        for (;;) {
            // Before the first wait too: messages of other hosts can have arrived together with the order.
            read_signals();
            forward_output();
            forward_from_hub();
            forward_from_processes();
            reap_processes();
            flush_all();
            if (running_ == 0 && !(hub_.is_open() && hub_.has_unsent())) {
                break;
            }
            wait_for_events();
        }
        return ranks::select_worst_status(codes_);
    }

 private:
    void start_process(int local_index);
    [[noreturn]] void execute_process(int local_index, int socket, pid_t parent);
    void wait_for_events();
    void read_signals();
    void forward_output();
    void forward_from_hub();
    void forward_from_processes();
    void forward_frames_from_process(std::size_t local_index);
    void reap_processes();
    int read_exit_code(int status) const;
    void deliver(const Frame& frame);
    int choose_end_signal() const;
    void handle_lost_hub();
    void send_signal(int signal);
    void flush_all();

    FrameLink hub_;
    StartOrder order_;
    std::vector<FrameLink> processes_;
    std::vector<pid_t> process_ids_;
    std::vector<int> codes_;  ///< -1 while it runs
    int running_ = 0;
    int forwarded_signal_ = 0;
    int signals_ = -1, output_ = -1, output_end_ = -1;
    sigset_t old_mask_{};
};

void SshNode::start_process(int local_index) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw TeamError(std::string("cannot start processes: ") + std::strerror(errno));
    }
    const pid_t parent = getpid();
    const pid_t process = fork();
    if (process == 0) {
        execute_process(local_index, ends[1], parent);
    }
    close(ends[1]);
    if (process < 0) {
        throw TeamError("cannot start process " + std::to_string(local_index) + " of " +
                        std::to_string(order_.process_count) + " on " + order_.host + ": " + std::strerror(errno) +
                        "; ask for fewer tasks");
    }
    processes_.emplace_back(ends[0], ends[0]);
    process_ids_.push_back(process);
    codes_.push_back(-1);
    ++running_;
}

void SshNode::execute_process(int local_index, int socket, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, choose_end_signal());  // without the node command nobody can reach this process
    if (getppid() != parent) {
        _exit(exit_environment);
    }
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    signal(SIGPIPE, SIG_DFL);
    dup2(output_end_, STDOUT_FILENO);
    fcntl(socket, F_SETFD, 0);
    setenv("SONDE_SSH_RANK", std::to_string(order_.first_process + local_index).c_str(), 1);
    setenv("SONDE_SSH_RANKS", std::to_string(order_.processes).c_str(), 1);
    setenv("SONDE_SSH_LOCAL_RANK", std::to_string(local_index).c_str(), 1);
    setenv("SONDE_SSH_LOCAL_RANKS", std::to_string(order_.process_count).c_str(), 1);
    setenv("SONDE_SSH_HOST", order_.host.c_str(), 1);
    setenv("SONDE_SSH_JOB", order_.job.c_str(), 1);
    setenv(ranks::ssh_socket_variable, std::to_string(socket).c_str(), 1);
    std::string program = engine_path();
    std::vector<char*> arguments{program.data()};
    for (std::string& argument : order_.command) {
        arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    execv(program.c_str(), arguments.data());
    records::print_error(order_.host + ": cannot start sonde-engine again: " + std::strerror(errno));
    _exit(exit_environment);
}

void SshNode::wait_for_events() {
    std::vector<pollfd> events{{signals_, POLLIN, 0}, {output_, POLLIN, 0}};
    const auto watch = [&events](const FrameLink& link) {
        if (link.is_open()) {
            events.push_back({link.input(), POLLIN, 0});
            if (link.has_unsent()) {
                events.push_back({link.output(), POLLOUT, 0});
            }
        }
    };
    watch(hub_);
    for (const FrameLink& process : processes_) {
        watch(process);
    }
    poll(events.data(), events.size(), -1);
}

void SshNode::read_signals() {
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            send_signal(static_cast<int>(info.ssi_signo));
        }
    }
}

void SshNode::forward_output() {
    std::array<char, 1U << 16U> buffer{};
    ssize_t count = 0;
    while (output_ >= 0 && (count = read(output_, buffer.data(), buffer.size())) > 0) {
        hub_.append({FrameKind::output, order_.first_process, all_processes,
                     std::string(buffer.data(), static_cast<std::size_t>(count))});
    }
    if (count == 0 && output_ >= 0) {  // all processes have closed it
        close(output_);
        output_ = -1;
    }
}

void SshNode::forward_from_hub() {
    if (!hub_.is_open()) {
        return;
    }
    const bool is_open = hub_.read_available();
    while (const std::optional<Frame> frame = hub_.take_frame()) {
        if (frame->kind == FrameKind::signal) {
            send_signal(std::atoi(frame->content.c_str()));
        } else {
            deliver(*frame);
        }
    }
    if (!is_open) {
        handle_lost_hub();
    }
}

/// The signal for the processes of this host when the run cannot continue. On the root's host they get SIGTERM, so that
/// the root completes the record. On other hosts they get SIGKILL, so that the root reports them as lost and not the
/// run as interrupted.
int SshNode::choose_end_signal() const {
    return order_.first_process == 0 ? SIGTERM : SIGKILL;
}

/// Ends the processes, to which those of all other hosts have ended.
void SshNode::handle_lost_hub() {
    hub_.close();
    for (int process = 0; process < order_.processes; ++process) {
        if (process < order_.first_process || process >= order_.first_process + order_.process_count) {
            deliver({FrameKind::ended, process, all_processes, std::to_string(exit_environment)});
        }
    }
    send_signal(choose_end_signal());
}

void SshNode::forward_from_processes() {
    for (std::size_t local_index = 0; local_index < processes_.size(); ++local_index) {
        if (processes_[local_index].is_open() && !processes_[local_index].read_available()) {
            forward_frames_from_process(local_index);
            processes_[local_index].close();
        } else if (processes_[local_index].is_open()) {
            forward_frames_from_process(local_index);
        }
    }
}

void SshNode::forward_frames_from_process(std::size_t local_index) {
    while (const std::optional<Frame> frame = processes_[local_index].take_frame()) {
        const bool is_here =
            frame->to >= order_.first_process && frame->to < order_.first_process + order_.process_count;
        if (is_here || frame->to == all_processes) {
            deliver(*frame);
        }
        if (!is_here && hub_.is_open()) {
            hub_.append(*frame);
        }
    }
}

/// To the processes of this host that it is for.
void SshNode::deliver(const Frame& frame) {
    for (std::size_t local_index = 0; local_index < processes_.size(); ++local_index) {
        const int process = order_.first_process + static_cast<int>(local_index);
        if (processes_[local_index].is_open() &&
            (frame.to == process || (frame.to == all_processes && frame.from != process))) {
            processes_[local_index].append(frame);
        }
    }
}

void SshNode::reap_processes() {
    for (int status = 0;;) {
        const pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended <= 0) {
            return;
        }
        for (std::size_t local_index = 0; local_index < process_ids_.size(); ++local_index) {
            if (process_ids_[local_index] != ended) {
                continue;
            }
            if (processes_[local_index].is_open()) {  // what it sent last
                processes_[local_index].read_available();
                forward_frames_from_process(local_index);
                processes_[local_index].close();
            }
            const int process = order_.first_process + static_cast<int>(local_index);
            codes_[local_index] = read_exit_code(status);
            --running_;
            if (codes_[local_index] == exit_failed && WIFSIGNALED(status)) {
                records::print_error("process " + std::to_string(process) + " on " + order_.host +
                                     " was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
                                     strsignal(WTERMSIG(status)) + ")");
                send_signal(choose_end_signal());  // the others would notice it at the end of the phase only
            }
            forward_output();
            const Frame notice{FrameKind::ended, process, all_processes, std::to_string(codes_[local_index])};
            deliver(notice);
            if (hub_.is_open()) {
                hub_.append(notice);
            }
        }
    }
}

int SshNode::read_exit_code(int status) const {
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status);
    }
    return WTERMSIG(status) == forwarded_signal_ ? exit_interrupted : exit_failed;
}

void SshNode::send_signal(int signal) {
    forwarded_signal_ = signal;
    for (std::size_t local_index = 0; local_index < process_ids_.size(); ++local_index) {
        if (codes_[local_index] < 0) {
            kill(process_ids_[local_index], signal);
        }
    }
}

void SshNode::flush_all() {
    if (hub_.is_open() && !hub_.flush()) {
        handle_lost_hub();
    }
    for (FrameLink& process : processes_) {
        if (process.is_open()) {
            process.flush();  // of one that has ended, waitpid() knows
        }
    }
}

}  // namespace

int run_ssh_node() {
    signal(SIGPIPE, SIG_IGN);
    const std::string greeting = node_greeting() + "\n";
    if (write(STDOUT_FILENO, greeting.data(), greeting.size()) != static_cast<ssize_t>(greeting.size())) {
        return exit_environment;
    }
    FrameLink hub = take_standard_streams();
    try {
        const std::optional<Frame> frame = wait_for_order(hub);
        if (!frame) {
            return 0;
        }
        StartOrder order = parse_start_order(frame->content);
        for (const std::string& variable : order.variables) {
            const std::size_t equals = variable.find('=');
            setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
        }
        if (chdir(order.directory.c_str()) != 0) {
            throw TeamError(order.host + " has no directory " + order.directory + " (" + std::strerror(errno) +
                            "): start in one that all hosts have");
        }
        return SshNode(std::move(hub), std::move(order)).run();
    } catch (const TeamError& error) {
        records::print_error(error.what());
        return exit_environment;
    }
}

}  // namespace sonde::remote
