// SPDX-License-Identifier: Apache-2.0
// One program that a preload library has broken before, a scenario each. It prints only what must be the same with and
// without the library. Usage: defects SCENARIO
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
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

enum { RECORD = 100 };

static char record[RECORD];
static int fd;
static volatile int hits;

static void write_records(int count) {
    for (int i = 0; i < count; ++i) {
        if (write(fd, record, RECORD) != RECORD) {
            printf("write: %s\n", strerror(errno));
            exit(9);
        }
    }
}
static void count_signal(int number) {
    (void)number;
    ++hits;
}
static void set_timer(int which, long microseconds) {
    const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    setitimer(which, &timer, NULL);
}

/// As a profiler does: a handler that blocks everything, and a timer.
static void profiling_timer(void) {
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(SIGPROF, &action, NULL);
    set_timer(ITIMER_PROF, 2000);
    while (hits < 20) {
        write_records(50);
    }
    set_timer(ITIMER_PROF, 0);
    printf("%d\n", hits >= 20);
    ftruncate(fd, 1000);
}

#if defined(__x86_64__)
asm(".globl return_from_signal\nreturn_from_signal: mov $15,%rax\n syscall\n");
extern void return_from_signal(void);
/// A handler that is set without the C library, and blocks everything.
static void raw_handler(void) {
    const struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {count_signal, 0x04000000 | SA_RESTART, return_from_signal, ~0UL};
    long result;
    register long bytes asm("r10") = 8;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(SYS_rt_sigaction), "D"(SIGALRM), "S"(&action), "d"(0), "r"(bytes)
                 : "rcx", "r11", "memory");
    set_timer(ITIMER_REAL, 5000);
    while (hits < 20) {
        write_records(100);
    }
    set_timer(ITIMER_REAL, 0);
    printf("%ld %d\n", result, hits >= 20);
    ftruncate(fd, 1000);
}
#else
static void raw_handler(void) {
}
#endif

static void small_signal_stack(void) {
    const stack_t stack = {.ss_sp = malloc(2048), .ss_size = 2048};
    printf("%d\n", sigaltstack(&stack, NULL));
    write_records(2000);
}

static void use_large_stack(int number) {
    char local[400 * 1024];
    memset(local, number, sizeof(local));
    hits += local[1000] != 0;
}
static void large_handler_without_stack(void) {
    struct sigaction action = {.sa_handler = use_large_stack, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    write_records(2000);
    set_timer(ITIMER_REAL, 3000);
    while (hits < 20) {
        write_records(100);
    }
    set_timer(ITIMER_REAL, 0);
    printf("%d\n", hits >= 20);
    ftruncate(fd, 1000);
}

static void make_writable(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    mprotect((void*)((unsigned long)info->si_addr & ~4095UL), 4096, PROT_READ | PROT_WRITE);
    ++hits;
}
enum { PAGES = 64 };
static char* guarded_pages(int protection) {
    struct sigaction action = {.sa_sigaction = make_writable, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    char* pages = mmap(NULL, 4096 * PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PAGES; ++i) {
        memset(pages + i * 4096, 'A' + i % 26, 4096);
    }
    mprotect(pages, 4096 * PAGES, protection);
    return pages;
}
/// Writes from memory whose faults the program repairs; where the kernel says EFAULT it touches the memory and repeats.
static void repaired_fault_in_write(void) {
    char* pages = guarded_pages(PROT_NONE);
    write_records(300);
    for (int i = 0; i < PAGES; ++i) {
        write_records(20);
        ssize_t bytes = write(fd, pages + i * 4096, 1000);
        if (bytes < 0 && errno == EFAULT) {
            *(volatile char*)(pages + i * 4096);
            bytes = write(fd, pages + i * 4096, 1000);
        }
        if (bytes != 1000) {
            printf("%zd\n", bytes);
        }
    }
    printf("%ld\n", (long)lseek(fd, 0, SEEK_END));
}
static void repaired_fault_in_read(void) {
    for (int i = 0; i < 10000; ++i) {
        snprintf(record, RECORD, "%099d", i);
        write_records(1);
    }
    close(fd);
    fd = open("data", O_RDONLY);
    char* pages = guarded_pages(PROT_READ);
    long sum = 0;
    for (int i = 0; i < PAGES; ++i) {
        for (int k = 0; k < 20; ++k) {
            sum += read(fd, record, RECORD);
        }
        ssize_t bytes = read(fd, pages + i * 4096, RECORD);
        if (bytes < 0 && errno == EFAULT) {
            pages[i * 4096] = 1;
            bytes = read(fd, pages + i * 4096, RECORD);
        }
        sum += atol(pages + i * 4096) * (i + 1);
    }
    printf("%ld %ld\n", sum, (long)lseek(fd, 0, SEEK_CUR));
}

/// fcntl locks count from the offset of the descriptor.
static void lock_from_current_offset(void) {
    write_records(1000);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = 0, .l_len = 10};
    printf("%d ", fcntl(fd, F_SETLK, &lock));
    fflush(stdout);
    if (fork() == 0) {
        const int other = open("data", O_RDWR);
        struct flock seen = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        fcntl(other, F_GETLK, &seen);
        printf("%ld %ld\n", (long)seen.l_start, (long)seen.l_len);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
}

/// A second number of the same file, of whose making the library knows nothing.
static void print_size_and_byte(int other) {
    char byte = '?';
    const ssize_t bytes = pread(other, &byte, 1, 99 * RECORD);
    printf("%ld %zd %c\n", (long)lseek(other, 0, SEEK_END), bytes, byte);
}
static void received_descriptor(void) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    fflush(stdout);
    if (fork() == 0) {
        const int other = open("data", O_RDWR);
        char control[CMSG_SPACE(sizeof(int))] = {0};
        struct iovec part = {"x", 1};
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        struct cmsghdr* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &other, sizeof(int));
        sendmsg(ends[1], &message, 0);
        _exit(0);
    }
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    recvmsg(ends[0], &message, 0);
    wait(NULL);
    int other;
    memcpy(&other, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    close(fd);
    fd = open("data", O_RDWR);
    write_records(1000);
    print_size_and_byte(other);
    write_records(1000);
    print_size_and_byte(other);
}
/// The parent (a shell) has given us number 20.
static void inherited_descriptor(void) {
    const int inherited = 20;
    if (fcntl(inherited, F_GETFD) < 0) {
        dup2(fd, inherited);
        execl("/proc/self/exe", "defects", "inherited_descriptor", "again", (char*)NULL);
    }
    write_records(1000);
    print_size_and_byte(inherited);
    write_records(1000);
    print_size_and_byte(inherited);
}
static void sealed_memory_file(void) {
    const int memory = memfd_create("sealed", MFD_ALLOW_SEALING);
    char name[64];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", memory);
    fd = open(name, O_RDWR);
    write_records(500);
    print_size_and_byte(memory);
    printf("%d\n", fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE));
    int done = 0;
    while (done < 200 && write(fd, record, RECORD) == RECORD) {
        ++done;
    }
    printf("%d\n", done);
}

/// Small records to a log, a large file that fills the disk, more records: each call answers what it would answer.
static void full_disk(void) {
    const int large = open("large", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    static char block[1 << 20];
    write_records(400);
    ssize_t bytes;
    while ((bytes = write(large, block, sizeof(block))) > 0) {
    }
    printf("%s\n", strerror(errno));
    for (int i = 0; i < 1000; ++i) {
        if (write(fd, record, RECORD) != RECORD) {
            printf("record %d: %s\n", i, strerror(errno));
            exit(1);
        }
    }
    printf("%d\n", close(fd));
}
/// A daemon: the parent ends at once, the child goes on with other standard streams.
static void daemon_closes_standard_error(void) {
    write_records(300);
    fflush(stdout);
    if (fork() == 0) {
        const int null = open("/dev/null", O_RDWR);
        setsid();
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        sleep(3);
        _exit(0);
    }
}
static void open_without_waiting(void) {
    write_records(1000);
    const int other = open("data", O_RDONLY | O_NONBLOCK);
    printf("%d ", other >= 0);
    print_size_and_byte(other);
}
static void open_link_without_waiting(void) {
    write_records(1000);
    symlink("data", "link");
    const int linked = open("link", O_RDONLY | O_NONBLOCK);
    printf("%d ", linked >= 0);
    print_size_and_byte(linked);
    unlink("link");
}

/// Longer than data is held back (0.2 s): a crash loses no more than what is younger.
static void wait_until_handed_over(void) {
    write_records(1000);
    usleep(800 * 1000);
}
static void ends_by_breakpoint(void) {
    wait_until_handed_over();
    __builtin_trap();
}
static void overflow_stack(int depth) {
    volatile char local[4096];
    local[0] = (char)depth;
    overflow_stack(depth + 1);
    local[1] = local[0];
}
/// Also with a stack for signals that was given and taken away.
static void ends_by_stack_overflow(void) {
    stack_t stack = {.ss_sp = malloc(16384), .ss_size = 16384};
    sigaltstack(&stack, NULL);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    wait_until_handed_over();
    overflow_stack(0);
}

static const struct {
    const char* name;
    void (*run)(void);
} scenarios[] = {
#define SCENARIO(name) \
    { #name, name }
    SCENARIO(profiling_timer),
    SCENARIO(raw_handler),
    SCENARIO(small_signal_stack),
    SCENARIO(large_handler_without_stack),
    SCENARIO(repaired_fault_in_write),
    SCENARIO(repaired_fault_in_read),
    SCENARIO(lock_from_current_offset),
    SCENARIO(received_descriptor),
    SCENARIO(inherited_descriptor),
    SCENARIO(sealed_memory_file),
    SCENARIO(full_disk),
    SCENARIO(daemon_closes_standard_error),
    SCENARIO(open_without_waiting),
    SCENARIO(open_link_without_waiting),
    SCENARIO(ends_by_breakpoint),
    SCENARIO(ends_by_stack_overflow),
};

int main(int argc, char** argv) {
    memset(record, 'x', sizeof(record));
    for (unsigned i = 0; argc > 1 && i < sizeof(scenarios) / sizeof(*scenarios); ++i) {
        if (strcmp(argv[1], "--list") == 0) {
            puts(scenarios[i].name);
        } else if (strcmp(argv[1], scenarios[i].name) == 0) {
            fd = open("data", O_RDWR | O_CREAT | (argc == 2 ? O_TRUNC : 0), 0644);
            scenarios[i].run();
            return 0;
        }
    }
    return argc > 1 && strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
