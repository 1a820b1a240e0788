// SPDX-License-Identifier: Apache-2.0
#include "mounted/service.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

namespace sonde::simulate {
namespace {

constexpr unsigned largest_transfer = 1U << 20U;

void begin_session(void* /*service*/, struct fuse_conn_info* kernel) {
    kernel->max_write = largest_transfer;
    kernel->max_readahead = largest_transfer;
    // Limit of asynchronous and direct calls in flight.
    kernel->max_background = 512;
    kernel->congestion_threshold = 512;
    kernel->want |= kernel->capable & (FUSE_CAP_ASYNC_DIO | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS);
    // Attributes are read by separate calls, which the machine gets; pages are written when programs write them.
    kernel->want &= ~(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_WRITEBACK_CACHE |
                      FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

/// Opens the log before the mount, which may cover its folder. Returns -1 without one.
int open_log(const std::string& path) {
    return path.empty() ? -1 : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/// Handles signals of faulty programs: writes a line, and the signal ends the program.
void report_fatal_signal(int number) {
    char line[] = "sonde-mount: ended by signal 00\n";
    line[sizeof line - 4] = static_cast<char>('0' + number / 10 % 10);
    line[sizeof line - 3] = static_cast<char>('0' + number % 10);
    static_cast<void>(!::write(STDERR_FILENO, line, sizeof line - 1));
    ::raise(number);
}

/// Directs messages of the background to the log. Uncaught exceptions print theirs anyway.
void report_to_log(int log) {
    if (log < 0) {
        return;
    }
    ::dup2(log, STDERR_FILENO);
    ::close(log);
    struct sigaction action {};
    action.sa_handler = report_fatal_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
        ::sigaction(number, &action, nullptr);
    }
}

}  // namespace

/// The table of FUSE calls: each calls the method of its name.
struct FuseCallbacks {
    template <auto method, class... Arguments>
    static void call_method(fuse_req_t request, Arguments... arguments) {
        auto* service = static_cast<FuseService*>(fuse_req_userdata(request));
        try {
            (service->*method)(request, arguments...);
        } catch (const std::bad_alloc&) {
            fuse_reply_err(request, ENOMEM);
        } catch (const std::exception&) {
            fuse_reply_err(request, EIO);
        }
        service->machine_.record_request_end();
    }

    /// Receives the next call. The first waiting thread polls for a while before it sleeps, since waking a thread takes
    /// longer than a short call.
    static ssize_t receive(int device, void* memory, size_t size, void* userdata) {
        auto* service = static_cast<FuseService*>(userdata);
        if (!service->spinning_.test_and_set()) {
            using Clock = std::chrono::steady_clock;
            const Clock::time_point until = Clock::now() + std::chrono::nanoseconds(service->options_.spin_time);
            struct pollfd ready {
                device, POLLIN, 0
            };
            while (::poll(&ready, 1, 0) == 0 && Clock::now() < until) {
            }
            service->spinning_.clear();
        }
        return ::read(device, memory, size);
    }
    static ssize_t send(int device, struct iovec* parts, int count, void* /*userdata*/) {
        return ::writev(device, parts, count);
    }

    static struct fuse_lowlevel_ops table() {
        struct fuse_lowlevel_ops calls {};
        calls.init = begin_session;
        calls.lookup = call_method<&FuseService::lookup>;
        calls.forget = call_method<&FuseService::forget>;
        calls.forget_multi = call_method<&FuseService::forget_multi>;
        calls.mknod = call_method<&FuseService::mknod>;
        calls.mkdir = call_method<&FuseService::mkdir>;
        calls.symlink = call_method<&FuseService::symlink>;
        calls.link = call_method<&FuseService::link>;
        calls.unlink = call_method<&FuseService::unlink>;
        calls.rmdir = call_method<&FuseService::rmdir>;
        calls.rename = call_method<&FuseService::rename>;
        calls.readlink = call_method<&FuseService::readlink>;
        calls.opendir = call_method<&FuseService::opendir>;
        calls.readdir = call_method<&FuseService::readdir>;
        calls.releasedir = call_method<&FuseService::releasedir>;
        calls.fsyncdir = call_method<&FuseService::fsyncdir>;
        calls.getattr = call_method<&FuseService::getattr>;
        calls.setattr = call_method<&FuseService::setattr>;
        calls.statfs = call_method<&FuseService::statfs>;
        calls.getxattr = call_method<&FuseService::getxattr>;
        calls.setxattr = call_method<&FuseService::setxattr>;
        calls.listxattr = call_method<&FuseService::listxattr>;
        calls.removexattr = call_method<&FuseService::removexattr>;
        calls.create = call_method<&FuseService::create>;
        calls.open = call_method<&FuseService::open>;
        calls.read = call_method<&FuseService::read>;
        calls.write_buf = call_method<&FuseService::write_buf>;
        calls.flush = call_method<&FuseService::flush>;
        calls.release = call_method<&FuseService::release>;
        calls.fsync = call_method<&FuseService::fsync>;
        calls.fallocate = call_method<&FuseService::fallocate>;
        calls.lseek = call_method<&FuseService::lseek>;
        return calls;
    }
};

FuseService::FuseService(RealTimeMachine& machine, Store& store, ControlFiles& controls, const MountOptions& options)
    : machine_(machine), store_(store), controls_(controls), options_(options), program_nodes_(machine, options.nodes) {
}

int FuseService::run() {
    constexpr int mount_failed = 3;
    const struct fuse_lowlevel_ops calls = FuseCallbacks::table();
    std::string mount_options = "fsname=sonde:" + machine_.system().system + ",subtype=sonde";
    mount_options += options_.allow_other ? ",allow_other,default_permissions" : "";
    const int log = options_.foreground ? -1 : open_log(options_.log);
    const char* arguments[] = {"sonde-mount", "-o", mount_options.c_str()};
    struct fuse_args fuse_arguments = FUSE_ARGS_INIT(3, const_cast<char**>(arguments));
    const auto end_session = [](struct fuse_session* session) { fuse_session_destroy(session); };
    const std::unique_ptr<struct fuse_session, decltype(end_session)> session(
        fuse_session_new(&fuse_arguments, &calls, sizeof calls, this), end_session);
    fuse_opt_free_args(&fuse_arguments);
    if (session == nullptr || fuse_session_mount(session.get(), options_.directory.c_str()) != 0) {
        return mount_failed;  // libfuse has printed the reason
    }
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 14)
    if (options_.spin_time > 0) {
        const struct fuse_custom_io device_io { FuseCallbacks::send, FuseCallbacks::receive, nullptr, nullptr };
        if (fuse_session_custom_io(session.get(), &device_io, fuse_session_fd(session.get())) != 0) {
            return mount_failed;
        }
    }
#endif
    int exit_code = mount_failed;
    if (fuse_daemonize(options_.foreground ? 1 : 0) == 0 && fuse_set_signal_handlers(session.get()) == 0) {
        report_to_log(log);
        struct fuse_loop_config* loop = fuse_loop_cfg_create();
        fuse_loop_cfg_set_max_threads(loop, options_.threads);
        fuse_loop_cfg_set_idle_threads(loop, options_.threads);
        // An end by a signal is a success.
        const int result = fuse_session_loop_mt(session.get(), loop);
        exit_code = result >= 0 ? 0 : mount_failed;
        if (result < 0) {
            std::fprintf(stderr, "sonde-mount: the session failed (%s)\n", std::strerror(-result));
        } else if (result > 0 && !options_.foreground) {
            std::fprintf(stderr, "sonde-mount: ended by signal %d\n", result);
        }
        fuse_loop_cfg_destroy(loop);
        fuse_remove_signal_handlers(session.get());
    }
    fuse_session_unmount(session.get());
    return exit_code;
}

}  // namespace sonde::simulate
