// SPDX-License-Identifier: Apache-2.0
#include "mounted/service.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

namespace sonde::simulate {
namespace {

constexpr unsigned largest_transfer = 1U << 20U;

void begin_session(void* /*service*/, struct fuse_conn_info* kernel) {
    kernel->max_write = largest_transfer;
    kernel->max_readahead = largest_transfer;
    // What the kernel may have under way without a thread of its own that waits: asynchronous and direct calls.
    kernel->max_background = 512;
    kernel->congestion_threshold = 512;
    kernel->want |= kernel->capable & (FUSE_CAP_ASYNC_DIO | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS);
    // Attributes belong to calls that the machine sees; pages are written when programs write them.
    kernel->want &= ~(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_WRITEBACK_CACHE |
                      FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

}  // namespace

/// Entries of the table of calls: each leads to the method of its name.
struct Calls {
    template <auto method, class... Words>
    static void to(fuse_req_t request, Words... words) {
        auto* service = static_cast<Service*>(fuse_req_userdata(request));
        try {
            (service->*method)(request, words...);
        } catch (const std::bad_alloc&) {
            fuse_reply_err(request, ENOMEM);
        } catch (const std::exception&) {
            fuse_reply_err(request, EIO);
        }
        service->pace_.served();
    }

    /// The next call. Of the threads that wait for one, the first looks out for it for a while before it sleeps: to
    /// wake a thread takes longer than a short call.
    static ssize_t receive(int device, void* memory, size_t size, void* userdata) {
        auto* service = static_cast<Service*>(userdata);
        if (!service->spinning_.test_and_set()) {
            using Clock = std::chrono::steady_clock;
            const Clock::time_point until = Clock::now() + std::chrono::nanoseconds(service->options_.spin);
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
        calls.lookup = to<&Service::lookup>;
        calls.forget = to<&Service::forget>;
        calls.forget_multi = to<&Service::forget_multi>;
        calls.mknod = to<&Service::mknod>;
        calls.mkdir = to<&Service::mkdir>;
        calls.symlink = to<&Service::symlink>;
        calls.link = to<&Service::link>;
        calls.unlink = to<&Service::unlink>;
        calls.rmdir = to<&Service::rmdir>;
        calls.rename = to<&Service::rename>;
        calls.readlink = to<&Service::readlink>;
        calls.opendir = to<&Service::opendir>;
        calls.readdir = to<&Service::readdir>;
        calls.releasedir = to<&Service::releasedir>;
        calls.fsyncdir = to<&Service::fsyncdir>;
        calls.getattr = to<&Service::getattr>;
        calls.setattr = to<&Service::setattr>;
        calls.statfs = to<&Service::statfs>;
        calls.getxattr = to<&Service::getxattr>;
        calls.setxattr = to<&Service::setxattr>;
        calls.listxattr = to<&Service::listxattr>;
        calls.removexattr = to<&Service::removexattr>;
        calls.create = to<&Service::create>;
        calls.open = to<&Service::open>;
        calls.read = to<&Service::read>;
        calls.write_buf = to<&Service::write_buf>;
        calls.flush = to<&Service::flush>;
        calls.release = to<&Service::release>;
        calls.fsync = to<&Service::fsync>;
        calls.fallocate = to<&Service::fallocate>;
        calls.lseek = to<&Service::lseek>;
        return calls;
    }
};

Service::Service(Pace& pace, Store& store, ControlFiles& controls, const MountOptions& options)
    : pace_(pace), store_(store), controls_(controls), options_(options), callers_(pace, options.nodes) {
}

int Service::run() {
    constexpr int refused = 3;
    const struct fuse_lowlevel_ops calls = Calls::table();
    std::string words = "fsname=sonde:" + pace_.site().system + ",subtype=sonde";
    words += options_.allow_other ? ",allow_other,default_permissions" : "";
    const char* arguments[] = {"sonde-mount", "-o", words.c_str()};
    struct fuse_args given = FUSE_ARGS_INIT(3, const_cast<char**>(arguments));
    const auto end_session = [](struct fuse_session* session) { fuse_session_destroy(session); };
    const std::unique_ptr<struct fuse_session, decltype(end_session)> session(
        fuse_session_new(&given, &calls, sizeof calls, this), end_session);
    fuse_opt_free_args(&given);
    if (session == nullptr || fuse_session_mount(session.get(), options_.directory.c_str()) != 0) {
        return refused;  // libfuse has said why
    }
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 14)
    if (options_.spin > 0) {
        const struct fuse_custom_io ways { Calls::send, Calls::receive, nullptr, nullptr };
        if (fuse_session_custom_io(session.get(), &ways, fuse_session_fd(session.get())) != 0) {
            return refused;
        }
    }
#endif
    int answer = refused;
    if (fuse_daemonize(options_.foreground ? 1 : 0) == 0 && fuse_set_signal_handlers(session.get()) == 0) {
        struct fuse_loop_config* loop = fuse_loop_cfg_create();
        fuse_loop_cfg_set_max_threads(loop, options_.threads);
        fuse_loop_cfg_set_idle_threads(loop, options_.threads);
        // Ended by a signal is ended as asked.
        answer = fuse_session_loop_mt(session.get(), loop) >= 0 ? 0 : refused;
        fuse_loop_cfg_destroy(loop);
        fuse_remove_signal_handlers(session.get());
    }
    fuse_session_unmount(session.get());
    return answer;
}

}  // namespace sonde::simulate
