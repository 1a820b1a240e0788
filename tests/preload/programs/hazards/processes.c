// SPDX-License-Identifier: Apache-2.0
// Ends of processes of all kinds, and children that share descriptors or get them.
#include "hazard.h"

#include <spawn.h>
#include <sys/socket.h>

extern char** environ;

// --- ends of processes ---
static void left_open(void) { put(open_new("out"), 300, 'a'); }
static void fast_exit(void) { put(open_new("out"), 300, 'a'); _exit(3); }
static void quick(void) { put(open_new("out"), 300, 'a'); quick_exit(4); }
static void raw_exit(void) { put(open_new("out"), 300, 'a'); syscall(SYS_exit_group, 5); }
static void aborts(void) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    put(open_new("out"), 300, 'a');
    abort();
}
static int late_fd;
static void late(void) { put(late_fd, 10, 'l'); }
static void at_exit_handler(void) { atexit(late); late_fd = open_new("out"); put(late_fd, 10, 'a'); }
__attribute__((destructor)) static void after_all(void) {
    if (late_fd < 0) {
        put(-late_fd, 10, 'd');
    }
}
static void in_destructor(void) { int fd = open_new("out"); put(fd, 10, 'a'); late_fd = -fd; }

// --- children ---
static void forks(void) {
    int fd = open_new("out");
    put(fd, 100, 'p');
    pid_t child = fork();
    if (child == 0) {
        put(fd, 50, 'c');
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("offset %ld\n", (long)lseek(fd, 0, SEEK_CUR));
    put(fd, 100, 'q');
}
static void borrows(void) {  // what subprocess.Popen(stdout=file) does
    int fd = open_new("out");
    put(fd, 3, 'p');
    pid_t child = vfork();
    if (child == 0) {
        dup2(fd, 1);
        for (int i = 3; i < 64; ++i) {
            close(i);
        }
        execl("/bin/echo", "echo", "from the child", (char*)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
    put(fd, 3, 'q');
    printf("%ld\n", size_of("out"));
}
static void spawns(void) {
    int fd = open_new("out");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    put(fd, 3, 'p');
    char* arguments[] = {"echo", "from the child", NULL};
    pid_t child;
    posix_spawn(&child, "/bin/echo", &actions, NULL, arguments, environ);
    waitpid(child, NULL, 0);
    put(fd, 3, 'q');
}
static void asks_shell(void) {
    int fd = open_new("out");
    put(fd, 3, 'p');
    fflush(stdout);
    printf("%d\n", system("cksum out; echo more >>out"));
    printf("%ld\n", (long)lseek(fd, 0, SEEK_END));
    FILE* pipe = popen("wc -c <out", "r");
    int size = 0;
    printf("%d %d\n", fscanf(pipe, "%d", &size), size);
    pclose(pipe);
    put(fd, 3, 'q');
}
static void replaces_itself(void) {
    int fd = open_new("out");
    char text[16];
    put(fd, 20, 'a');
    snprintf(text, sizeof(text), "%d", fd);
    execl("/nowhere", "nowhere", (char*)NULL);
    put(fd, 20, 'b');
    execl("/proc/self/exe", "processes", "continues", text, (char*)NULL);
}
static int continued(const char* what, const char* fd) {
    if (strcmp(what, "continues") != 0) {
        return 2;
    }
    printf("offset %ld\n", (long)lseek(atoi(fd), 0, SEEK_CUR));
    put(atoi(fd), 20, 'c');
    return 0;
}
static void sends_descriptor(void) {
    int pair[2], fd = open_new("out");
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    pid_t child = fork();
    if (child == 0) {
        int got = -1;
        recvmsg(pair[1], &message, 0);
        memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
        put(got, 5, 'c');
        _exit(0);
    }
    int second = open_new("second");
    put(second, 5, 'p');
    struct cmsghdr* control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &second, sizeof(int));
    sendmsg(pair[0], &message, 0);
    waitpid(child, NULL, 0);
    put(second, 5, 'q');
    close(fd);
}

SCENARIOS(continued, ONE(left_open), ONE(fast_exit), ONE(quick), ONE(raw_exit), ONE(aborts), ONE(at_exit_handler),
          ONE(in_destructor), ONE(forks), ONE(borrows), ONE(spawns), ONE(asks_shell), ONE(replaces_itself),
          ONE(sends_descriptor))
