// SPDX-License-Identifier: Apache-2.0
// Threads that share a descriptor or are canceled, signals in the middle of calls, processes that lock.
#include "hazard.h"

#include <pthread.h>
#include <signal.h>

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

SCENARIOS(nothing_continues, ONE(threads), ONE(threads_one_offset), ONE(cancels), ONE(interrupted),
          ONE(asks_handlers), ONE(locks))
