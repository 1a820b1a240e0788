// SPDX-License-Identifier: Apache-2.0
// Runs a program for which the kernel states a quota: a supervisor answers quotactl_fd() for one KIND (0 user, 1 group,
// 2 project) with LIMIT_KIB in force, none used. Project 7 is that of all files for KIND 2 and 3; with KIND 3 the
// program may not ask for the quota of a project. Nothing enforces the quota. Usage: stated_quota KIND LIMIT_KIB
// PROGRAM [ARGUMENTS]...
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define OFFSET(member) (unsigned)offsetof(struct seccomp_data, member)

static int install_filter(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OFFSET(nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_quotactl_fd, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OFFSET(args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FS_IOC_FSGETXATTR, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void answer(int listener, int kind, unsigned long long limit) {
    struct seccomp_notif call = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
        return;
    }
    struct if_dqblk quota = {.dqb_bhardlimit = limit, .dqb_valid = QIF_ALL};
    struct fsxattr attributes = {.fsx_projid = kind >= 2 ? 7 : 0};
    const int is_quota = call.data.nr == SYS_quotactl_fd;
    const int asked = (int)(call.data.args[1] & 0xff);
    struct iovec from = {is_quota ? (void*)&quota : (void*)&attributes, is_quota ? sizeof(quota) : sizeof(attributes)};
    struct iovec to = {(void*)call.data.args[is_quota ? 3 : 2], from.iov_len};
    struct seccomp_notif_resp response = {.id = call.id};
    if (is_quota && (call.data.args[1] & 0xffffffff) >> 8 != Q_GETQUOTA) {
        response.error = -EINVAL;
    } else if (is_quota && asked != kind) {
        response.error = kind == 3 && asked == 2 ? -EPERM : -ESRCH;
    } else if (process_vm_writev((pid_t)call.pid, &from, 1, &to, 1, 0) < 0) {
        response.error = -EFAULT;
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

int main(int argc, char** argv) {
    int pipe_fds[2], listener = -1;
    if (argc < 4 || pipe(pipe_fds) != 0) {
        return 2;
    }
    const pid_t child = fork();
    if (child == 0) {
        listener = install_filter();
        if (write(pipe_fds[1], &listener, sizeof(listener)) != sizeof(listener) || listener < 0) {
            return 99;
        }
        raise(SIGSTOP);
        fcntl(listener, F_SETFD, FD_CLOEXEC);
        execvp(argv[3], argv + 3);
        return 127;
    }
    int status = 0;
    waitpid(child, &status, WUNTRACED);
    if (WIFEXITED(status) || read(pipe_fds[0], &listener, sizeof(listener)) != sizeof(listener)) {
        return 99;
    }
    const int child_fd = (int)syscall(SYS_pidfd_open, child, 0);
    listener = (int)syscall(SYS_pidfd_getfd, child_fd, listener, 0);
    kill(child, SIGCONT);
    const pid_t server = fork();
    while (server == 0) {
        answer(listener, atoi(argv[1]), strtoull(argv[2], NULL, 10));
    }
    waitpid(child, &status, 0);
    kill(server, SIGKILL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
