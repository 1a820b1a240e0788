// SPDX-License-Identifier: Apache-2.0
// Small programs that do what makes life hard for a library in between. Each prints only what must be the same with and
// without it. Usage: hazards SCENARIO (in an empty folder)
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if !__GLIBC_PREREQ(2, 34)  // the same call of the kernel
#define close_range(first, last, flags) (int)syscall(436, first, last, flags)
#define closefrom(first) syscall(436, first, ~0U, 0)
#endif

extern char** environ;
static char record[1000];

static int open_new(const char* path) { return open(path, O_RDWR | O_CREAT | O_TRUNC, 0644); }
static void put(int fd, int count, char sign) {
    memset(record, sign, sizeof(record));
    record[sizeof(record) - 1] = '\n';
    for (int i = 0; i < count; ++i) {
        if (write(fd, record, sizeof(record)) != (ssize_t)sizeof(record)) {
            printf("write: %s\n", strerror(errno));
        }
    }
}
static long size_of(const char* path) {
    struct stat got;
    return stat(path, &got) == 0 ? (long)got.st_size : -1;
}

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
    execl("/proc/self/exe", "hazards", "continues", text, (char*)NULL);
}
static void continues(const char* fd) {
    printf("offset %ld\n", (long)lseek(atoi(fd), 0, SEEK_CUR));
    put(atoi(fd), 20, 'c');
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

// --- descriptors ---
static void closes_all(void) {
    int fd = open_new("out");
    put(fd, 30, 'a');
    for (int i = 3; i < 1100; ++i) {
        close(i);
    }
    fd = open_new("second");
    put(fd, 30, 'b');
    printf("%d %ld\n", close_range(3, ~0U, 0), size_of("out"));
    printf("%ld\n", (long)write(fd, "x", 1));
    fd = open_new("third");
    put(fd, 30, 'c');
    closefrom(3);
    printf("%ld %ld\n", size_of("second"), size_of("third"));
}
static void to_stdout(void) {
    int fd = open_new("out"), kept = dup(1);
    put(fd, 3, 'a');
    fflush(stdout);
    dup2(fd, 1);
    printf("through the stream\n");
    fflush(stdout);
    put(fd, 3, 'b');
    dup2(kept, 1);
    printf("%ld\n", size_of("out"));
}
static void streams_too(void) {
    int fd = open_new("out");
    put(fd, 3, 'a');
    FILE* other = fopen("out", "r+");
    char line[1200] = "";
    printf("%d\n", fgets(line, sizeof(line), other) != NULL && line[0] == 'a');
    fseek(other, 0, SEEK_END);
    fputs("from the stream\n", other);
    fflush(other);
    put(fd, 1, 'b');
    fclose(other);
    FILE* mine = fdopen(fd, "r+");
    fputs("on the same descriptor\n", mine);
    fclose(mine);
    printf("%ld %d\n", size_of("out"), fcntl(fd, F_GETFD));
}
static void opens_again(void) {
    int fd = open_new("out");
    put(fd, 30, 'a');
    int other = open("out", O_WRONLY | O_TRUNC);
    printf("%ld\n", size_of("out"));
    put(other, 2, 'b');
    put(fd, 1, 'c');
    printf("%ld %ld\n", size_of("out"), (long)lseek(fd, 0, SEEK_CUR));
}
static void appends(void) {
    int fd = open_new("out"), other = open("out", O_WRONLY | O_APPEND), third = open("out", O_RDWR);
    put(fd, 3, 'a');
    put(other, 2, 'b');
    put(third, 1, 'c');
    fcntl(third, F_SETFL, O_APPEND);
    put(third, 1, 'd');
    printf("%ld\n", size_of("out"));
}
static void appends_with_child(void) {
    int fd = open("out", O_WRONLY | O_CREAT | O_APPEND, 0644), same = dup(fd), other = open("out", O_RDONLY);
    char text[40] = "";
    put(fd, 300, 'a');
    put(same, 20, 'b');
    pwrite(fd, "where it says 0\n", 16, 0);
    printf("%ld %zd\n", (long)lseek(same, 0, SEEK_CUR), pread(other, text, 30, 319990));
    printf("%s\n", text);
    if (fork() == 0) {
        put(fd, 100, 'c');
        _exit(0);
    }
    wait(NULL);
    put(same, 100, 'd');
    printf("%ld %ld\n", size_of("out"), (long)lseek(fd, 0, SEEK_CUR));
    ftruncate(fd, 1000);
    put(fd, 10, 'e');
    fcntl(fd, F_SETFL, 0);
    lseek(fd, 5000, SEEK_SET);
    put(fd, 1, 'f');
    printf("%ld\n", size_of("out"));
}
static void replaces_file(void) {
    int fd = open_new("new");
    put(fd, 30, 'n');
    rename("new", "out");
    fflush(stdout);
    printf("%d\n", system("cksum <out"));
    put(fd, 1, 'm');
    unlink("out");
    put(fd, 1, 'o');
    struct stat got;
    fstat(fd, &got);
    printf("%ld %ld\n", (long)got.st_size, (long)got.st_nlink);
}
static void maps(void) {
    int fd = open_new("out");
    put(fd, 8, 'a');
    char* seen = mmap(NULL, 8000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    printf("%c%c\n", seen[0], seen[7998]);
    pwrite(fd, "written", 7, 100);
    printf("%.7s\n", seen + 100);
    memcpy(seen + 200, "mapped", 6);
    char text[8] = "";
    pread(fd, text, 6, 200);
    printf("%s\n", text);
}
static void refuses(void) {
    int fd = open_new("out"), reader = open("out", O_RDONLY);
    put(fd, 5, 'a');
    printf("%zd %s\n", write(reader, record, 10), strerror(errno));
    printf("%zd %s\n", pread(fd, (char*)16, 10, 0), strerror(errno));
    printf("%zd %s\n", pwrite(fd, record, 10, -1), strerror(errno));
    printf("%ld %s\n", (long)lseek(fd, -1, SEEK_SET), strerror(errno));
    printf("%ld %s\n", (long)lseek(fd, 0, 77), strerror(errno));
    printf("%zd\n", read(fd, record, 0));
    printf("%d %s\n", ftruncate(reader, 3), strerror(errno));
}
static void limited(void) {
    struct rlimit limit = {10000, 10000};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    int fd = open_new("out");
    memset(record, 'a', sizeof(record));
    long total = 0, got;
    while ((got = write(fd, record, 999)) > 0) {
        total += got;
    }
    printf("%ld %s %ld\n", total, strerror(errno), size_of("out"));
}

// --- threads and signals ---
static int shared_fd;
static void* writes_at(void* argument) {
    long number = (long)argument;
    char text[100];
    memset(text, (int)('A' + number), sizeof(text));
    for (int i = 0; i < 3000; ++i) {
        if (pwrite(shared_fd, text, sizeof(text), (i * 8 + number) * 100L) != 100) {
            printf("short\n");
        }
        char back[100];
        if (pread(shared_fd, back, sizeof(back), (i * 8 + number) * 100L) != 100 || memcmp(back, text, 100) != 0) {
            printf("wrong data\n");
        }
    }
    return NULL;
}
static void* writes_next(void* argument) {
    char text[50];
    memset(text, (int)('A' + (long)argument), sizeof(text));
    text[49] = '\n';
    for (int i = 0; i < 2000; ++i) {
        if (write(shared_fd, text, 50) != 50) {
            printf("short\n");
        }
    }
    return NULL;
}
static void in_threads(void* (*work)(void*)) {
    pthread_t threads[8];
    for (long i = 0; i < 8; ++i) {
        pthread_create(&threads[i], NULL, work, (void*)i);
    }
    for (int i = 0; i < 8; ++i) {
        pthread_join(threads[i], NULL);
    }
}
static void threads(void) {
    shared_fd = open_new("out");
    in_threads(writes_at);
}
static void threads_one_offset(void) {  // which line comes when is chance; that all are there and whole is not
    shared_fd = open_new("lines");
    in_threads(writes_next);
    int counts[8] = {0};
    char line[50];
    lseek(shared_fd, 0, SEEK_SET);
    while (read(shared_fd, line, 50) == 50) {
        for (int i = 0; i < 49; ++i) {
            if (line[i] != line[0] || line[49] != '\n') {
                printf("torn line\n");
            }
        }
        ++counts[line[0] - 'A'];
    }
    for (int i = 0; i < 8; ++i) {
        printf("%d\n", counts[i]);
    }
    unlink("lines");
}
static void* endless(void* argument) {
    (void)argument;
    while (1) {
        put(shared_fd, 1, 'x');
    }
}
static void cancels(void) {
    shared_fd = open_new("lines");
    for (int i = 0; i < 20; ++i) {
        pthread_t thread;
        void* result = NULL;
        pthread_create(&thread, NULL, endless, NULL);
        usleep(2000);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED) {
            printf("not canceled\n");
        }
    }
    printf("%ld\n", (long)lseek(shared_fd, 0, SEEK_CUR) % 1000);
    put(shared_fd, 1, 'z');
    printf("%d\n", close(shared_fd));
    unlink("lines");
}
static volatile sig_atomic_t signals;
static void on_signal(int number) {
    int kept = errno;
    (void)number;
    ++signals;
    if (write(shared_fd, "signal...\n", 10) != 10) {
        _exit(9);
    }
    errno = kept;
}
static void interrupted(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 300}, {0, 300}};
    shared_fd = open_new("lines");
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    memset(record, 'r', 9);
    record[9] = '\n';
    for (int i = 0; i < 300000; ++i) {
        if (write(shared_fd, record, 10) != 10) {
            printf("short\n");
        }
    }
    memset(&timer, 0, sizeof(timer));
    setitimer(ITIMER_REAL, &timer, NULL);
    long others = 0, marks = 0;
    char line[10];
    lseek(shared_fd, 0, SEEK_SET);
    while (read(shared_fd, line, 10) == 10) {
        marks += memcmp(line, "signal...\n", 10) == 0;
        others += memcmp(line, "rrrrrrrrr\n", 10) == 0;
    }
    printf("%ld %d\n", others, marks == signals);
    unlink("lines");
}
static void asks_handlers(void) {  // by one way set, by another asked for
    struct sigaction found, details = {.sa_handler = on_signal, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    memset(&found, 0, sizeof(found));
    shared_fd = open_new("lines");
    printf("%d\n", signal(SIGUSR1, on_signal) == SIG_DFL);
    sigaction(SIGUSR1, NULL, &found);
    printf("%d %x\n", found.sa_handler == on_signal, (unsigned)found.sa_flags);
    sigaction(SIGUSR1, &details, &found);
    printf("%d %x\n", found.sa_handler == on_signal, (unsigned)found.sa_flags);
    sigaction(SIGUSR1, NULL, &found);
    printf("%d %x\n", found.sa_handler == on_signal, (unsigned)found.sa_flags);
    raise(SIGUSR1);
    sigaction(SIGUSR1, NULL, &found);
    printf("%d %d\n", found.sa_handler == SIG_DFL, (int)signals);
    struct itimerval timer = {{0, 300}, {0, 300}};
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &timer, NULL);
    put(shared_fd, 100000, 'r');
    memset(&timer, 0, sizeof(timer));
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("%d\n", size_of("lines") == 100000 * 1000 + 10 * signals);
    unlink("lines");
}
static void locks(void) {  // two processes count in one file, each under a lock
    int fd = open_new("counter");
    write(fd, "00000", 5);
    close(fd);
    for (int who = 0; who < 2; ++who) {
        if (fork() == 0) {
            fd = open("counter", O_RDWR);
            for (int i = 0; i < 300; ++i) {
                struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
                char text[6] = "";
                fcntl(fd, F_SETLKW, &lock);
                pread(fd, text, 5, 0);
                snprintf(text, sizeof(text), "%05d", atoi(text) + 1);
                pwrite(fd, text, 5, 0);
                lock.l_type = F_UNLCK;
                fcntl(fd, F_SETLK, &lock);
            }
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
    char text[6] = "";
    fd = open("counter", O_RDONLY);
    printf("%ld %s\n", (long)read(fd, text, 5), text);
}
static void by_number(void) {  // calls that libc has no name for, or had none once
    struct { unsigned long flags, mode, resolve; } how = {O_RDWR | O_CREAT, 0644, 0};
    int fd = (int)syscall(437, AT_FDCWD, "out", &how, sizeof(how));
    put(fd, 30, 'a');
    printf("%d %ld\n", fd >= 0, size_of("out"));
    printf("%ld\n", syscall(436, fd, fd, 0));
    printf("%zd %ld\n", write(fd, "x", 1), size_of("out"));
}
static void tries_all_numbers(void) {  // as programs do that close or list whatever they find open
    put(open_new("out"), 30, 'a');
    for (int fd = 0; fd < 4096; ++fd) {
        struct stat got;
        const int by_status = fstat(fd, &got) == 0;
        const int by_flags = fcntl(fd, F_GETFD) >= 0;
        if (by_status || by_flags) {
            printf("%d %d %d\n", fd, by_status, by_flags);
        }
    }
}
static void closed_stderr(void) { put(open_new("out"), 30, 'a'); close(2); close(1); }

static const struct { const char* name; void (*run)(void); } scenarios[] = {
    {"left_open", left_open}, {"fast_exit", fast_exit}, {"quick", quick}, {"raw_exit", raw_exit}, {"aborts", aborts},
    {"at_exit_handler", at_exit_handler}, {"in_destructor", in_destructor}, {"forks", forks}, {"borrows", borrows},
    {"spawns", spawns}, {"asks_shell", asks_shell}, {"replaces_itself", replaces_itself},
    {"sends_descriptor", sends_descriptor}, {"closes_all", closes_all}, {"to_stdout", to_stdout},
    {"streams_too", streams_too}, {"opens_again", opens_again}, {"appends", appends},
    {"appends_with_child", appends_with_child}, {"replaces_file", replaces_file},
    {"maps", maps}, {"refuses", refuses}, {"limited", limited}, {"threads", threads},
    {"threads_one_offset", threads_one_offset}, {"cancels", cancels}, {"interrupted", interrupted},
    {"asks_handlers", asks_handlers}, {"locks", locks},
    {"by_number", by_number}, {"tries_all_numbers", tries_all_numbers}, {"closed_stderr", closed_stderr},
};

int main(int argc, char** argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && strcmp(argv[1], "continues") == 0) {
        continues(argv[2]);
        return 0;
    }
    for (unsigned i = 0; i < sizeof(scenarios) / sizeof(*scenarios); ++i) {
        if (argc == 2 && strcmp(argv[1], "--list") == 0) {
            printf("%s\n", scenarios[i].name);
        } else if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            return 0;
        }
    }
    return argc == 2 && strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
