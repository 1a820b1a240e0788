// SPDX-License-Identifier: Apache-2.0
// What is known of a file besides its bytes: times, modes, names, sizes.
#include "scenario.h"

#include <linux/capability.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

static int continued(const char* what, const char* word) { return what == word; }

static const struct timespec old_times[2] = {{1000000000, 5}, {1100000000, 7}};
static const struct timeval old_seconds[2] = {{1000000000, 0}, {1100000000, 0}};
static void say_mtime(const char* path) {
    struct stat got;
    memset(&got, 0, sizeof(got));
    lstat(path, &got);
    printf("%ld.%09ld %ld\n", (long)got.st_mtim.tv_sec, got.st_mtim.tv_nsec, (long)got.st_size);
}
static int written(void) {
    const int fd = open_new("data");
    put(fd, 60, 'm');
    return fd;
}
static void closed(int fd) {
    close(fd);
    say_mtime("data");
}
static void times_by_descriptor(void) { const int fd = written(); futimens(fd, old_times); closed(fd); }
static void times_by_path(void) { const int fd = written(); utimensat(AT_FDCWD, "data", old_times, 0); closed(fd); }
static void times_by_empty_path(void) {
    const int fd = written();
    printf("%ld\n", syscall(SYS_utimensat, fd, NULL, old_times, 0));
    closed(fd);
}
static void times_by_utimes(void) { const int fd = written(); utimes("data", old_seconds); closed(fd); }
static void times_by_futimes(void) { const int fd = written(); futimes(fd, old_seconds); closed(fd); }
static void times_by_lutimes(void) { const int fd = written(); lutimes("data", old_seconds); closed(fd); }
static void times_by_utime(void) {
    const int fd = written();
    const struct utimbuf when = {1000000000, 1100000000};
    utime("data", &when);
    closed(fd);
}
static void times_seen_at_once(void) {
    const int fd = written();
    struct stat got;
    futimens(fd, old_times);
    fstat(fd, &got);
    printf("%ld\n", (long)got.st_mtime);
    closed(fd);
}
static void times_then_more(void) {
    const int fd = written();
    struct stat before, after;
    futimens(fd, old_times);
    put(fd, 40, 'n');
    fstat(fd, &after);
    printf("%d\n", after.st_mtime > 1100000000);
    futimens(fd, old_times);
    fstat(fd, &before);
    printf("%ld\n", (long)before.st_mtime);
    closed(fd);
}
static void times_move_on(void) {  // a write that is made later than it was asked for may not look earlier than it was
    const int fd = written();
    struct timespec now;
    struct stat got;
    usleep(20000);
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    put(fd, 40, 'n');
    fstat(fd, &got);
    printf("%d\n", got.st_mtim.tv_sec * 1000000000L + got.st_mtim.tv_nsec >= now.tv_sec * 1000000000L + now.tv_nsec);
    close(fd);
}
static void as_nobody(int fd) {
    if (geteuid() == 0) {
        printf("%d\n", fchown(fd, 65534, 65534));
        printf("%d\n", setresuid(65534, 65534, 0));
    }
}
static void say_mode(void) {
    struct stat got;
    stat("data", &got);
    printf("%o\n", (unsigned)got.st_mode);
}
static void setuid_stays(void) { const int fd = open_new("data"); as_nobody(fd); put(fd, 60, 's'); fchmod(fd, 04755); close(fd); say_mode(); }
static void setgid_stays(void) { const int fd = open_new("data"); as_nobody(fd); put(fd, 60, 's'); chmod("data", 02755); close(fd); say_mode(); }
static void setuid_is_lost_by_a_write(void) {
    const int fd = open_new("data");
    as_nobody(fd);
    put(fd, 60, 's');
    fchmod(fd, 04755);
    put(fd, 40, 't');
    say_mode();
    close(fd);
}
static void capabilities_stay(void) {
    const int fd = written();
    struct vfs_cap_data given = {VFS_CAP_REVISION_2, {{1 << 10, 0}, {0, 0}}};
    const int done = fsetxattr(fd, "security.capability", &given, XATTR_CAPS_SZ_2, 0);
    close(fd);
    char got[64];
    printf("%d %zd\n", done, getxattr("data", "security.capability", got, sizeof(got)));
}
static void attributes_stay(void) {
    const int fd = written();
    const int done = setxattr("data", "user.sonde", "x", 1, 0);
    put(fd, 40, 'a');
    close(fd);
    char got[4];
    printf("%d %zd\n", done, getxattr("data", "user.sonde", got, sizeof(got)));
}
static void owner_changes(void) {
    const int fd = written();
    printf("%d\n", geteuid() == 0 ? chown("data", 1234, 1234) : 0);
    put(fd, 40, 'o');
    close(fd);
    printf("%ld\n", size_of("data"));
    say_mode();
}
static void read_only_in_between(void) {
    const int fd = written();
    fchmod(fd, 0444);
    put(fd, 40, 'o');
    printf("%ld\n", size_of("data"));
    say_mode();
    close(fd);
}
static void renamed(void) { const int fd = written(); rename("data", "other"); printf("%ld\n", bare_size("other")); put(fd, 40, 'r'); close(fd); printf("%ld\n", size_of("other")); }
static void linked(void) { const int fd = written(); link("data", "other"); put(fd, 40, 'r'); printf("%ld\n", size_of("other")); close(fd); }
static void unlinked(void) {
    const int fd = written();
    struct stat got;
    unlink("data");
    put(fd, 40, 'r');
    fstat(fd, &got);
    printf("%ld %ld\n", (long)got.st_size, (long)got.st_nlink);
    char record[RECORD];
    printf("%zd %c\n", pread(fd, record, RECORD, 99 * RECORD), record[0]);
    close(fd);
}
static void truncated_by_path(void) { const int fd = written(); truncate("data", 150); put(fd, 40, 't'); printf("%ld\n", size_of("data")); close(fd); }
static void truncated_by_descriptor(void) { const int fd = written(); ftruncate(fd, 150); lseek(fd, 150, SEEK_SET); put(fd, 40, 't'); printf("%ld\n", size_of("data")); close(fd); }
static void emptied_by_another_open(void) { const int fd = written(); close(open("data", O_WRONLY | O_TRUNC)); put(fd, 40, 't'); printf("%ld\n", size_of("data")); close(fd); }
static void space_is_asked_for(void) { const int fd = written(); posix_fallocate(fd, 0, 20000); put(fd, 40, 't'); printf("%ld\n", size_of("data")); close(fd); }
static void size_at_each_step(void) {
    const int fd = open_new("data");
    long wrong = 0;
    for (int i = 0; i < 200; ++i) {
        put(fd, 30, 'z');
        wrong += bare_size("data") != (i + 1) * 30L * RECORD;
    }
    printf("%ld\n", wrong);
    close(fd);
}
static void size_by_statx(void) {
    const int fd = written();
    struct statx got;
    statx(AT_FDCWD, "data", 0, STATX_SIZE, &got);
    printf("%lld\n", (long long)got.stx_size);
    put(fd, 40, 'x');
    statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &got);
    printf("%lld\n", (long long)got.stx_size);
    close(fd);
}
static void offset_at_each_step(void) {
    const int fd = open_new("data");
    long wrong = 0;
    for (int i = 0; i < 200; ++i) {
        put(fd, 30, 'z');
        wrong += lseek(fd, 0, SEEK_CUR) != (i + 1) * 30L * RECORD;
    }
    printf("%ld %ld\n", wrong, (long)lseek(fd, 0, SEEK_END));
    close(fd);
}
static void holes_are_found(void) {
    const int fd = written();
    lseek(fd, 1000000, SEEK_SET);
    put(fd, 60, 'h');
    printf("%ld\n", (long)lseek(fd, 0, SEEK_DATA));
    printf("%d\n", lseek(fd, 100000, SEEK_DATA) >= 900000);
    close(fd);
}

SCENARIOS(ONE(times_by_descriptor), ONE(times_by_path), ONE(times_by_empty_path), ONE(times_by_utimes),
          ONE(times_by_futimes), ONE(times_by_lutimes), ONE(times_by_utime), ONE(times_seen_at_once),
          ONE(times_then_more), ONE(times_move_on), ONE(setuid_stays), ONE(setgid_stays), ONE(setuid_is_lost_by_a_write),
          ONE(capabilities_stay), ONE(attributes_stay), ONE(owner_changes), ONE(read_only_in_between), ONE(renamed),
          ONE(linked), ONE(unlinked), ONE(truncated_by_path), ONE(truncated_by_descriptor), ONE(emptied_by_another_open),
          ONE(space_is_asked_for), ONE(size_at_each_step), ONE(size_by_statx), ONE(offset_at_each_step),
          ONE(holes_are_found))
