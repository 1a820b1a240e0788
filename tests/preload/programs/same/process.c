// SPDX-License-Identifier: Apache-2.0
// Descriptors, ends of processes, signals, threads, limits and sandboxes.
#include "scenario.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

static int continued(const char* what, const char* word) {
    if (strcmp(what, "inherits") == 0) {  // a descriptor with a high number, and its offset
        put(atoi(word), 60, 'c');
        return 0;
    }
    return 2;
}
static int count_good(const char* path, int records, char sign) {
    char record[RECORD + 1], expected[RECORD + 1];
    int good = 0;
    const int fd = open(path, O_RDONLY);
    for (int i = 0; i < records; ++i) {
        fill(expected, sign, i);
        good += read(fd, record, RECORD) == RECORD && memcmp(record, expected, RECORD) == 0;
    }
    close(fd);
    return good;
}

// --- descriptors ---
static void a_duplicate_shares_the_offset(void) { const int fd = open_new("data"), other = dup(fd); put(fd, 50, 'a'); put(other, 50, 'b'); put(fd, 50, 'c'); printf("%ld %ld\n", size_of("data"), (long)lseek(other, 0, SEEK_CUR)); }
static void a_high_number_is_inherited(void) {
    const int fd = open_new("data");
    dup2(fd, 40);
    put(40, 60, 'p');
    const pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "same", "inherits", "40", NULL);
        _exit(9);
    }
    printf("%d", wait_for(child));
    put(40, 60, 'q');
    printf(" %ld\n", size_of("data"));
}
static void a_number_becomes_a_pipe(void) {  // closed where nobody looks; messages of a pair of sockets keep their bounds
    const int fd = open_new("data");
    int pair[2], lengths = 0;
    char text[4096];
    put(fd, 60, 'd');
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_close), "D"((long)fd) : "rcx", "r11", "memory");
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    for (int i = 0; i < 40; ++i) {
        lengths += write(pair[0], "message", 7) == 7;
    }
    for (int i = 0; i < 40; ++i) {
        lengths += read(pair[1], text, sizeof(text)) == 7;
    }
    printf("%d %d\n", pair[0] == fd, lengths);
}
static void a_descriptor_is_sent(void) {
    int pair[2];
    const int fd = open_new("data");
    put(fd, 60, 's');
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    const pid_t child = fork();
    char control[CMSG_SPACE(sizeof(int))] = {0}, sign = 'x';
    struct iovec part = {&sign, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    if (child == 0) {
        int got;
        close(fd);
        recvmsg(pair[1], &message, 0);
        memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
        put(got, 60, 't');
        _exit(0);
    }
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    sendmsg(pair[0], &message, 0);
    printf("%d", wait_for(child));
    put(fd, 60, 'u');
    printf(" %ld\n", size_of("data"));
}
static int separate_fd;
static void* separated(void* wanted) {
    int* step = wanted;
    unshare(CLONE_FILES);
    close(separate_fd);
    separate_fd = open("other", O_RDWR | O_CREAT | O_TRUNC, 0644);
    put(separate_fd, 60, 't');
    __atomic_store_n(step, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
static void a_thread_has_its_own_table(void) {  // one number, two files
    int step = 0;
    pthread_t thread;
    separate_fd = open_new("data");
    const int mine = separate_fd;
    put(mine, 60, 'm');
    pthread_create(&thread, NULL, separated, &step);
    pthread_join(thread, NULL);
    put(mine, 60, 'n');
    close(mine);
    printf("%ld %ld\n", size_of("data"), size_of("other"));
}
static void all_numbers_are_used(void) {
    struct rlimit limit = {256, 256};
    char name[32];
    int made = 0;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (;; ++made) {
        snprintf(name, sizeof(name), "f%d", made);
        const int fd = open_new(name);
        if (fd < 0) {
            printf("%d %s\n", made, strerror(errno));
            break;
        }
        put(fd, 20, 'f');
    }
}
static void high_numbers_are_the_programs(void) {
    const int fd = open_new("data");
    int good = 0;
    put(fd, 60, 'h');
    for (int to = 690; to < 720; ++to) {
        good += dup2(fd, to) == to;
    }
    for (int to = 690; to < 720; ++to) {
        good += close(to) == 0;
    }
    printf("%d\n", good);
}
static void append_is_set_in_between(void) {
    const int fd = open_new("data"), other = open("data", O_RDWR);
    put(fd, 60, 'a');
    put(other, 30, 'b');
    fcntl(fd, F_SETFL, O_APPEND);
    lseek(fd, 0, SEEK_SET);
    put(fd, 60, 'c');
    printf("%ld %ld\n", size_of("data"), (long)lseek(fd, 0, SEEK_CUR));
}
static void pieces_follow_each_other(void) {
    const int fd = open_new("data");
    char left[60], right[40];
    memset(left, 'l', sizeof(left));
    memset(right, 'r', sizeof(right));
    const struct iovec parts[2] = {{left, 60}, {right, 40}};
    long total = 0;
    for (int i = 0; i < 80; ++i) total += writev(fd, parts, 2);
    for (int i = 0; i < 80; ++i) total += pwritev(fd, parts, 2, 8000 + i * 100);
    for (int i = 0; i < 80; ++i) total += pwrite(fd, left, 60, 20000 + i * 60);
    lseek(fd, 0, SEEK_SET);
    char got[100];
    long sum = 0;
    const struct iovec back[2] = {{got, 30}, {got + 30, 70}};
    for (int i = 0; i < 300; ++i) sum += readv(fd, back, 2) + got[i % 100];
    for (int i = 300; i > 0; --i) sum += pread(fd, got, 50, i * 50) + got[7];
    printf("%ld %ld %ld\n", total, sum, (long)lseek(fd, 0, SEEK_CUR));
}
static void jumps_while_it_reads(void) {
    const int fd = open_new("data");
    char record[RECORD];
    long sum = 0;
    put(fd, 500, 'j');
    for (int i = 499; i >= 0; --i) {
        sum += lseek(fd, i * RECORD, SEEK_SET) + read(fd, record, RECORD) + record[RECORD - 2] * i;
    }
    for (int i = 0; i < 400; ++i) {
        sum += read(fd, record, 10) + lseek(fd, 17, SEEK_CUR) + record[3];
    }
    printf("%ld %ld %s\n", sum, (long)lseek(fd, -1, SEEK_SET), strerror(errno));
    printf("%ld\n", (long)lseek(fd, 0, SEEK_CUR));
}
static void two_files_in_turn(void) {
    const int a = open_new("a"), b = open_new("b");
    long wrong = 0;
    for (int i = 0; i < 100; ++i) {
        put(a, 20, 'a');
        put(b, 20, 'b');
        wrong += bare_size("a") != (i + 1) * 2000L;
    }
    printf("%ld %ld %ld\n", wrong, bare_size("b"), size_of("a"));
}
static void addresses_that_are_none(void) {
    const int fd = open_new("data");
    put(fd, 60, 'e');
    printf("%zd %s\n", write(fd, NULL, 10), strerror(errno));
    printf("%zd %s\n", write(fd, (void*)~0UL, 10), strerror(errno));
    put(fd, 60, 'e');
    printf("%zd %ld\n", write(fd, "", 0), size_of("data"));
}
static void descriptors_of_the_wrong_kind(void) {
    put(open_new("data"), 60, 'k');
    const int reads = open("data", O_RDONLY), writes = open("data", O_WRONLY);
    char record[RECORD];
    for (int i = 0; i < 40; ++i) {
        if (read(reads, record, RECORD) != RECORD) puts("short");
    }
    printf("%zd %s\n", write(reads, record, RECORD), strerror(errno));
    put(writes, 60, 'l');
    printf("%zd %s\n", read(writes, record, RECORD), strerror(errno));
}

// --- ends ---
static int in_a_child(void (*run)(int)) {
    const pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        run(open_new("data"));
        _exit(0);
    }
    const int code = wait_for(child);
    return printf("%d %ld\n", code, bare_size("data"));
}
static void run_into_nothing(int fd) { put(fd, 60, 'n'); *(volatile int*)8 = 1; }
static void ends_by_a_wrong_address(void) { in_a_child(run_into_nothing); }
static void run_into_division(int fd) { put(fd, 60, 'n'); volatile int zero = 0; printf("%d\n", 1 / zero); }
static void ends_by_a_division(void) { in_a_child(run_into_division); }
static void run_into_trap(int fd) { put(fd, 60, 'n'); __builtin_trap(); }
static void ends_by_a_wrong_instruction(void) { in_a_child(run_into_trap); }
static int overflow(volatile char* before) { volatile char more[4096]; more[0] = before[0]; return overflow(more) + more[0]; }
static void run_into_overflow(int fd) { volatile char first[1] = {0}; struct rlimit small = {1 << 20, 1 << 20}; setrlimit(RLIMIT_STACK, &small); put(fd, 60, 'n'); overflow(first); }
static void ends_by_an_overflow_of_the_stack(void) { in_a_child(run_into_overflow); }
static void run_into_kill(int fd) { put(fd, 60, 'n'); kill(getpid(), SIGKILL); }
static void kills_itself(void) { in_a_child(run_into_kill); }
static void run_into_segv(int fd) { put(fd, 60, 'n'); raise(SIGSEGV); }
static void sends_itself_a_fault(void) { in_a_child(run_into_segv); }
static void run_into_abort(int fd) { put(fd, 60, 'n'); abort(); }
static void aborts(void) { in_a_child(run_into_abort); }
static void run_into_exit(int fd) { put(fd, 60, 'n'); syscall(SYS_exit_group, 7); }
static void exits_by_number(void) { in_a_child(run_into_exit); }
static void run_into_bare_exit(int fd) { put(fd, 60, 'n'); __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(8L)); }
static void exits_without_the_c_library(void) { in_a_child(run_into_bare_exit); }
static void run_into_alarm(int fd) { signal(SIGALRM, SIG_DFL); put(fd, 60, 'n'); alarm(1); pause(); }
static void ends_by_an_alarm(void) { in_a_child(run_into_alarm); }

// --- signals ---
static volatile sig_atomic_t seen;
static long seen_size;
static void look(int number) { (void)number; ++seen; seen_size = bare_size("data"); }
static void a_handler_looks(void) {
    const int fd = open_new("data");
    signal(SIGUSR1, look);
    put(fd, 60, 'h');
    raise(SIGUSR1);
    printf("%d %ld\n", (int)seen, seen_size);
}
static sigjmp_buf back;
static void leave(int number) { siglongjmp(back, number); }
static void a_handler_leaves(void) {
    const int fd = open_new("data");
    signal(SIGSEGV, leave);
    for (volatile int i = 0; i < 20; ++i) {
        if (sigsetjmp(back, 1) == 0) {
            put(fd, 30, 'h');
            *(volatile int*)8 = 1;
        }
    }
    printf("%ld\n", bare_size("data"));
}
static void handlers_are_as_they_were(void) {
    const int fd = open_new("data");
    put(fd, 60, 'h');
    for (int number = 1; number < 32; ++number) {
        struct sigaction now;
        memset(&now, 0, sizeof(now));
        if (sigaction(number, NULL, &now) == 0 && (now.sa_handler != SIG_DFL || now.sa_flags != 0)) {
            printf("%d %x\n", number, (unsigned)now.sa_flags);
        }
    }
    stack_t stack;
    memset(&stack, 0, sizeof(stack));
    sigaltstack(NULL, &stack);
    printf("%d %d\n", stack.ss_sp == NULL, stack.ss_flags);
    printf("%d\n", signal(SIGSEGV, SIG_IGN) == SIG_DFL);
    printf("%d\n", signal(SIGSEGV, SIG_DFL) == SIG_IGN);
    printf("%d\n", signal(SIGSYS, look) == SIG_DFL);
    put(fd, 60, 'h');
    raise(SIGSYS);
    printf("%d %ld\n", (int)seen, bare_size("data"));
}
static void all_signals_are_blocked(void) {
    const int fd = open_new("data");
    sigset_t all;
    put(fd, 60, 'b');
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    put(fd, 60, 'b');
    printf("%ld\n", bare_size("data"));
    put(fd, 60, 'b');
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    printf("%ld\n", bare_size("data"));
}
static int interrupted_fd;
static void writes_too(int number) { (void)number; ++seen; put(interrupted_fd, 25, 'i'); }
static void a_handler_that_blocks_all_writes_too(void) {
    struct sigaction action = {.sa_handler = writes_too, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 700}, {0, 700}};
    sigfillset(&action.sa_mask);
    interrupted_fd = open_new("data");
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    put(interrupted_fd, 60000, 'm');
    memset(&timer, 0, sizeof(timer));
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("%d\n", bare_size("data") == (60000 + 25L * seen) * RECORD);
    unlink("data");
}

// --- threads ---
static void* after_main(void* fd) {
    usleep(20000);
    put((int)(long)fd, 60, 't');
    printf("%ld\n", bare_size("data"));
    return NULL;
}
static void main_ends_first(void) {
    pthread_t thread;
    const int fd = open_new("data");
    put(fd, 60, 'm');
    pthread_create(&thread, NULL, after_main, (void*)(long)fd);
    pthread_exit(NULL);
}
static void main_ends_alone(void) { put(open_new("data"), 60, 'm'); pthread_exit(NULL); }
static int step_of_threads;
static void* looks_at_once(void* wrong) {
    for (int i = 1; i <= 50; ++i) {
        while (__atomic_load_n(&step_of_threads, __ATOMIC_SEQ_CST) < 2 * i - 1) { }
        *(long*)wrong += bare_size("data") != i * 3000L;
        __atomic_store_n(&step_of_threads, 2 * i, __ATOMIC_SEQ_CST);
    }
    return NULL;
}
static void a_thread_looks_at_once(void) {  // told by memory
    pthread_t thread;
    long wrong = 0;
    const int fd = open_new("data");
    pthread_create(&thread, NULL, looks_at_once, &wrong);
    for (int i = 1; i <= 50; ++i) {
        put(fd, 30, 'w');
        __atomic_store_n(&step_of_threads, 2 * i - 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&step_of_threads, __ATOMIC_SEQ_CST) < 2 * i) { }
    }
    pthread_join(thread, NULL);
    printf("%ld\n", wrong);
}
static int cloned(void* fd) { put((int)(long)fd, 60, 'c'); return 0; }
static void a_process_shares_the_memory(void) {
    static char stack[1 << 16];
    const int fd = open_new("data");
    put(fd, 60, 'p');
    const pid_t child = clone(cloned, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD, (void*)(long)fd);
    printf("%d", wait_for(child));
    put(fd, 60, 'q');
    printf(" %ld\n", bare_size("data"));
}

// --- limits and sandboxes ---
static void a_file_may_not_grow(void) {
    struct rlimit limit = {5050, 5050};
    const int fd = open_new("data");
    put(fd, 30, 'l');
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    put(fd, 60, 'l');
    printf("%ld\n", bare_size("data"));
}
static void run_into_strict(int fd) {
    put(fd, 60, 's');
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    char record[RECORD + 1];
    for (int i = 0; i < 60; ++i) {
        memset(record, 'x', RECORD);
        if (write(fd, record, RECORD) != RECORD) break;
    }
    syscall(SYS_exit, 5);
}
static void only_the_strict_calls(void) { in_a_child(run_into_strict); }
static void another_name_space(void) {
    const int fd = open_new("data");
    put(fd, 60, 'u');
    printf("%d\n", unshare(CLONE_NEWUSER));
    put(fd, 60, 'u');
    printf("%ld\n", bare_size("data"));
}

SCENARIOS(ONE(a_duplicate_shares_the_offset), ONE(a_high_number_is_inherited), ONE(a_number_becomes_a_pipe),
          ONE(a_descriptor_is_sent), ONE(a_thread_has_its_own_table), ONE(all_numbers_are_used),
          ONE(high_numbers_are_the_programs), ONE(append_is_set_in_between), ONE(pieces_follow_each_other),
          ONE(jumps_while_it_reads), ONE(two_files_in_turn), ONE(addresses_that_are_none),
          ONE(descriptors_of_the_wrong_kind), ONE(ends_by_a_wrong_address), ONE(ends_by_a_division),
          ONE(ends_by_a_wrong_instruction), ONE(ends_by_an_overflow_of_the_stack), ONE(kills_itself),
          ONE(sends_itself_a_fault), ONE(aborts), ONE(exits_by_number), ONE(exits_without_the_c_library),
          ONE(ends_by_an_alarm), ONE(a_handler_looks), ONE(a_handler_leaves), ONE(handlers_are_as_they_were),
          ONE(all_signals_are_blocked), ONE(a_handler_that_blocks_all_writes_too), ONE(main_ends_first),
          ONE(main_ends_alone), ONE(a_thread_looks_at_once), ONE(a_process_shares_the_memory), ONE(a_file_may_not_grow),
          ONE(only_the_strict_calls), ONE(another_name_space))
