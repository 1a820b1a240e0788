// SPDX-License-Identifier: Apache-2.0
// Other processes look at the file, or change it, and this process tells them or hears of it by whatever channel.
#include "scenario.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>

extern char** environ;

enum { STEPS = 40, BURST = 30 };

/// A process without the library.
static int continued(const char* what, const char* word) {
    if (strcmp(what, "overwrite") == 0) {
        const int fd = open("data", O_WRONLY);
        put(fd, atoi(word), 'N');
        return close(fd);
    }
    return 2;
}
static pid_t start_bare(const char* what, const char* word) {
    char* arguments[] = {"/proc/self/exe", (char*)what, (char*)word, NULL};
    char* nothing[] = {NULL};
    pid_t child;
    return posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, nothing) == 0 ? child : -1;
}

/// Writes in bursts and tells another process after each, which says what it sees. `tell` and `hear` belong to the
/// channel; the answer always comes through a pipe.
static int answer[2];
static int wrong_answers(void (*tell)(int), void (*hear)(int)) {
    int wrong = 0;
    if (pipe(answer) != 0) {
        return -1;
    }
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < STEPS; ++i) {
            hear(i);
            const long seen = opened_size("data");
            if (write(answer[1], &seen, sizeof(seen)) != sizeof(seen)) {
                _exit(1);
            }
        }
        _exit(0);
    }
    const int fd = open_new("data");
    for (int i = 0; i < STEPS; ++i) {
        long seen = 0;
        put(fd, BURST, 'w');
        tell(i);
        if (read(answer[0], &seen, sizeof(seen)) != sizeof(seen)) {
            return -2;
        }
        wrong += seen != (i + 1L) * BURST * RECORD;
    }
    close(fd);
    return wrong + wait_for(child);
}

static int pipes[2];
static FILE* stream;
static void hear_pipe(int i) { char sign; if (read(pipes[0], &sign, 1) != 1) _exit(i); }
static void tell_pipe(int i) { if (write(pipes[1], "x", 1) != 1) _exit(i); }
static void told_by_a_pipe(void) { printf("%d %d\n", pipe(pipes), wrong_answers(tell_pipe, hear_pipe)); }
static void tell_printf(int i) { fprintf(stream, "%c", 'a' + i % 26); fflush(stream); }
static void told_by_printf(void) { const int made = pipe(pipes); stream = fdopen(pipes[1], "w"); printf("%d %d\n", made, wrong_answers(tell_printf, hear_pipe)); }
static void tell_unbuffered(int i) { fputc('a' + i % 26, stream); }
static void told_by_an_unbuffered_stream(void) {
    const int made = pipe(pipes);
    stream = fdopen(pipes[1], "w");
    setvbuf(stream, NULL, _IONBF, 0);
    printf("%d %d\n", made, wrong_answers(tell_unbuffered, hear_pipe));
}
static void tell_bare(int i) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_write), "D"((long)pipes[1]), "S"("x"), "d"(1L) : "rcx", "r11", "memory");
    if (result != 1) _exit(i);
}
static void told_without_the_c_library(void) { printf("%d %d\n", pipe(pipes), wrong_answers(tell_bare, hear_pipe)); }
static void tell_socket(int i) { if (send(pipes[1], "x", 1, 0) != 1) _exit(i); }
static void told_by_a_socket(void) { printf("%d %d\n", socketpair(AF_UNIX, SOCK_STREAM, 0, pipes), wrong_answers(tell_socket, hear_pipe)); }
static void tell_event(int i) { if (eventfd_write(pipes[0], 1) != 0) _exit(i); }
static void hear_event(int i) { eventfd_t got; if (eventfd_read(pipes[0], &got) != 0) _exit(i); }
static void told_by_an_event(void) { pipes[0] = eventfd(0, 0); printf("%d\n", wrong_answers(tell_event, hear_event)); }
static pid_t parent;
static int told;
static void tell_signal(int i) { (void)i; kill(told, SIGUSR1); }
static void hear_signal(int i) { sigset_t set; int got; (void)i; sigemptyset(&set); sigaddset(&set, SIGUSR1); sigwait(&set, &got); }
static void told_by_a_signal(void) {  // to the whole group; everybody blocks it, who waits gets it
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int tell_child[2];
    if (pipe(tell_child) != 0 || pipe(answer) != 0) return;
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < STEPS; ++i) {
            hear_signal(i);
            const long seen = opened_size("data");
            if (write(answer[1], &seen, sizeof(seen)) < 0) _exit(1);
        }
        _exit(0);
    }
    told = child;
    int wrong = 0;
    const int fd = open_new("data");
    for (int i = 0; i < STEPS; ++i) {
        long seen = 0;
        put(fd, BURST, 'w');
        tell_signal(i);
        if (read(answer[0], &seen, sizeof(seen)) < 0) break;
        wrong += seen != (i + 1L) * BURST * RECORD;
    }
    printf("%d %d\n", wrong, wait_for(child));
}
static volatile int* shared;
static void tell_memory(int i) { __atomic_store_n(shared, i + 1, __ATOMIC_SEQ_CST); }
static void hear_memory(int i) { while (__atomic_load_n(shared, __ATOMIC_SEQ_CST) <= i) { } }
static void told_by_shared_memory(void) { shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); printf("%d\n", wrong_answers(tell_memory, hear_memory)); }
static void told_by_a_mapped_file(void) {
    const int fd = open_new("flag");
    ftruncate(fd, 4096);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    printf("%d\n", wrong_answers(tell_memory, hear_memory));
}
static void told_by_a_shared_segment(void) {
    const int segment = shmget(IPC_PRIVATE, 4096, 0600);
    shared = shmat(segment, NULL, 0);
    shmctl(segment, IPC_RMID, NULL);
    printf("%d\n", wrong_answers(tell_memory, hear_memory));
}
static int queue;
static void tell_queue(int i) { struct { long type; char text; } one = {1, 'x'}; if (msgsnd(queue, &one, 1, 0) != 0) _exit(i); }
static void hear_queue(int i) { struct { long type; char text; } one; if (msgrcv(queue, &one, 1, 0, 0) != 1) _exit(i); }
static void told_by_a_queue(void) { queue = msgget(IPC_PRIVATE, 0600); printf("%d\n", wrong_answers(tell_queue, hear_queue)); msgctl(queue, IPC_RMID, NULL); }
static void tell_name(int i) { char name[32]; snprintf(name, sizeof(name), "flag%d", i); close(open(name, O_CREAT | O_WRONLY, 0644)); }
static void hear_name(int i) { char name[32]; snprintf(name, sizeof(name), "flag%d", i); while (access(name, F_OK) != 0) usleep(50); }
static void told_by_a_name(void) { printf("%d\n", wrong_answers(tell_name, hear_name)); }
static void tell_folder(int i) { char name[32]; snprintf(name, sizeof(name), "flag%d", i); mkdir(name, 0755); }
static void told_by_a_folder(void) { printf("%d\n", wrong_answers(tell_folder, hear_name)); }
static int turn;
static void tell_lock(int i) { (void)i; struct flock one = {.l_type = F_UNLCK, .l_start = i, .l_len = 1}; fcntl(turn, F_SETLK, &one); }
static void told_by_a_lock(void) {  // each burst ends with the release of one byte
    turn = open_new("turns");
    struct flock all = {.l_type = F_WRLCK, .l_len = STEPS};
    fcntl(turn, F_SETLK, &all);
    int ready[2], wrong = 0;
    if (pipe(answer) != 0 || pipe(ready) != 0) return;
    const pid_t child = fork();
    if (child == 0) {
        const int own = open("turns", O_RDWR);
        for (int i = 0; i < STEPS; ++i) {
            struct flock one = {.l_type = F_WRLCK, .l_start = i, .l_len = 1};
            fcntl(own, F_SETLKW, &one);
            const long seen = opened_size("data");
            if (write(answer[1], &seen, sizeof(seen)) < 0) _exit(1);
        }
        _exit(0);
    }
    const int fd = open_new("data");
    for (int i = 0; i < STEPS; ++i) {
        long seen = 0;
        put(fd, BURST, 'w');
        tell_lock(i);
        if (read(answer[0], &seen, sizeof(seen)) < 0) break;
        wrong += seen != (i + 1L) * BURST * RECORD;
    }
    printf("%d %d\n", wrong, wait_for(child));
}

// --- what others write is seen ---
/// Reads a file record by record, again and again, while another process changes it and says so.
static void say_first(int fd, int count) {
    char record[RECORD];
    int fresh = 0;
    lseek(fd, 0, SEEK_SET);
    for (int i = 0; i < count; ++i) {
        fresh += read(fd, record, RECORD) == RECORD && record[0] == 'N';
    }
    printf("%d\n", fresh);
}
static int read_before(void) {
    const int fd = open_new("data");
    put(fd, 400, 'o');
    lseek(fd, 0, SEEK_SET);
    say_first(fd, 100);
    return fd;
}
static void a_child_changes_it(void) { const int fd = read_before(); wait_for(start_bare("overwrite", "200")); say_first(fd, 300); close(fd); }
static void a_shell_changes_it(void) { const int fd = read_before(); system("printf NNNNNNNNNN | dd of=data conv=notrunc 2>/dev/null"); say_first(fd, 300); close(fd); }
static void a_shell_empties_it(void) { const int fd = read_before(); system(": > data"); say_first(fd, 300); printf("%ld\n", (long)lseek(fd, 0, SEEK_END)); close(fd); }
static void a_shell_in_a_pipe_changes_it(void) {
    const int fd = read_before();
    FILE* shell = popen("printf NNNNNNNNNN | dd of=data conv=notrunc 2>/dev/null", "w");
    pclose(shell);
    say_first(fd, 300);
    close(fd);
}
static void a_child_changes_it_while_it_is_read(void) {  // the next record must come from after the change
    const int fd = open_new("data");
    char record[RECORD];
    int fresh = 0;
    put(fd, 400, 'o');
    lseek(fd, 0, SEEK_SET);
    for (int i = 0; i < 400; ++i) {
        if (i == 100) wait_for(start_bare("overwrite", "400"));
        fresh += read(fd, record, RECORD) == RECORD && record[0] == 'N';
    }
    printf("%d\n", fresh);
    close(fd);
}
static void it_waits_for_a_byte(void) {  // with no other call than the read
    const int fd = open_new("data");
    char record[RECORD];
    put(fd, 100, 'o');
    for (int i = 0; i < 100; ++i) pread(fd, record, RECORD, i * RECORD);
    const pid_t child = start_bare("overwrite", "1");
    long tries = 0;
    do {
        pread(fd, record, 1, 0);
    } while (record[0] != 'N' && ++tries < 2000000000L);
    printf("%c %d\n", record[0], wait_for(child));
    close(fd);
}
static void it_waits_for_more(void) {  // as tail does, from the offset on
    const int fd = open_new("data");
    char record[RECORD];
    put(fd, 100, 'o');
    lseek(fd, 0, SEEK_SET);
    while (read(fd, record, RECORD) == RECORD) { }
    const pid_t child = start_bare("overwrite", "150");
    long got = 0;
    while (got < 50 * RECORD) {
        const ssize_t one = read(fd, record, RECORD);
        got += one > 0 ? one : 0;
    }
    printf("%ld %c %d\n", got, record[0], wait_for(child));
    close(fd);
}

// --- counters that several processes add to ---
static void count_up(void (*lock)(void), void (*unlock)(void)) {
    const int made = open_new("data");
    if (write(made, "000000", 6) != 6) return;
    for (int p = 0; p < 4; ++p) {
        if (fork() == 0) {
            const int fd = open("data", O_RDWR);
            for (int i = 0; i < 50; ++i) {
                char text[7] = "";
                lock();
                pread(fd, text, 6, 0);
                snprintf(text, sizeof(text), "%06d", atoi(text) + 1);
                pwrite(fd, text, 3, 0);
                pwrite(fd, text + 3, 3, 3);
                unlock();
            }
            _exit(0);
        }
    }
    while (wait(NULL) > 0) { }
    char text[7] = "";
    pread(made, text, 6, 0);
    puts(text);
}
static void lock_name(void) { int fd; while ((fd = open("lock", O_CREAT | O_EXCL | O_WRONLY, 0644)) < 0) usleep(20); close(fd); }
static void unlock_name(void) { unlink("lock"); }
static void counter_under_a_lock_file(void) { count_up(lock_name, unlock_name); }
static void lock_folder(void) { while (mkdir("lock", 0755) != 0) usleep(20); }
static void unlock_folder(void) { rmdir("lock"); }
static void counter_under_a_folder(void) { count_up(lock_folder, unlock_folder); }
static void lock_link(void) { while (symlink("x", "lock") != 0) usleep(20); }
static void counter_under_a_link(void) { count_up(lock_link, unlock_name); }
static void change_semaphore(int by) { struct sembuf one = {0, (short)by, 0}; semop(queue, &one, 1); }
static void lock_semaphore(void) { change_semaphore(-1); }
static void unlock_semaphore(void) { change_semaphore(1); }
static void counter_under_a_semaphore(void) { queue = semget(IPC_PRIVATE, 1, 0600); change_semaphore(1); count_up(lock_semaphore, unlock_semaphore); semctl(queue, 0, IPC_RMID); }
static void several_append_a_log(void) {  // whole lines of everybody
    for (int p = 0; p < 4; ++p) {
        if (fork() == 0) {
            const int fd = open("data", O_WRONLY | O_CREAT | O_APPEND, 0644);
            put(fd, 200, (char)('a' + p));
            _exit(0);
        }
    }
    while (wait(NULL) > 0) { }
    long counts[4] = {0}, others = 0;
    char record[RECORD];
    const int fd = open("data", O_RDONLY);
    while (read(fd, record, RECORD) == RECORD) {
        record[0] >= 'a' && record[0] <= 'd' && record[RECORD - 1] == '\n' ? ++counts[record[0] - 'a'] : ++others;
    }
    printf("%ld %ld %ld %ld %ld\n", counts[0], counts[1], counts[2], counts[3], others);
    unlink("data");  // whose line came first is chance
}
static void share_work(int fd) {  // each record is read by one of two, told by nothing but the offset
    int counts[2];
    char record[RECORD];
    long mine = 0, theirs = 0;
    if (pipe(counts) != 0) return;
    const pid_t child = fork();
    while (read(fd, record, RECORD) == RECORD) ++mine;
    if (child == 0) {
        _exit(write(counts[1], &mine, sizeof(mine)) != sizeof(mine));
    }
    if (read(counts[0], &theirs, sizeof(theirs)) < 0) return;
    printf("%ld %d\n", mine + theirs, wait_for(child));
}
static void work_is_shared_by_an_offset(void) {
    const int fd = open_new("data");
    put(fd, 20000, 's');
    lseek(fd, 0, SEEK_SET);
    share_work(fd);
}
static void work_is_shared_by_an_offset_of_which_nothing_is_known(void) {
    const int writer = open_new("data");
    put(writer, 20000, 's');
    close(writer);
    share_work(open("data", O_RDONLY));
}
static void each_misses_at_most_one(void) {  // both write, then both look: one of them must see the other
    int bad = 0;
    for (int round = 0; round < 60; ++round) {
        int start[2], seen[2][2];
        unlink("x"); unlink("y");
        close(open_new("x")); close(open_new("y"));
        if (pipe(start) != 0) return;
        for (int p = 0; p < 2; ++p) {
            if (pipe(seen[p]) != 0) return;
            if (fork() == 0) {
                char sign, record[RECORD];
                const int mine = open(p == 0 ? "x" : "y", O_RDWR), theirs = open(p == 0 ? "y" : "x", O_RDWR);
                if (read(start[0], &sign, 1) != 1) _exit(1);
                put(mine, 40, 'w');
                const long got = pread(theirs, record, RECORD, 39 * RECORD);
                if (write(seen[p][1], &got, sizeof(got)) < 0) _exit(1);
                _exit(0);
            }
        }
        long got[2] = {0, 0};
        if (write(start[1], "xx", 2) != 2) return;
        for (int p = 0; p < 2; ++p) {
            if (read(seen[p][0], &got[p], sizeof(got[p])) < 0) return;
            close(seen[p][0]); close(seen[p][1]);
        }
        close(start[0]); close(start[1]);
        while (wait(NULL) > 0) { }
        bad += got[0] <= 0 && got[1] <= 0;
    }
    printf("%d\n", bad);
}

SCENARIOS(ONE(told_by_a_pipe), ONE(told_by_printf), ONE(told_by_an_unbuffered_stream), ONE(told_without_the_c_library),
          ONE(told_by_a_socket), ONE(told_by_an_event), ONE(told_by_a_signal), ONE(told_by_shared_memory),
          ONE(told_by_a_mapped_file), ONE(told_by_a_shared_segment), ONE(told_by_a_queue), ONE(told_by_a_name),
          ONE(told_by_a_folder), ONE(told_by_a_lock), ONE(a_child_changes_it), ONE(a_shell_changes_it),
          ONE(a_shell_empties_it), ONE(a_shell_in_a_pipe_changes_it), ONE(a_child_changes_it_while_it_is_read),
          ONE(it_waits_for_a_byte), ONE(it_waits_for_more), ONE(counter_under_a_lock_file), ONE(counter_under_a_folder),
          ONE(counter_under_a_link), ONE(counter_under_a_semaphore), ONE(several_append_a_log),
          ONE(work_is_shared_by_an_offset), ONE(work_is_shared_by_an_offset_of_which_nothing_is_known),
          ONE(each_misses_at_most_one))
