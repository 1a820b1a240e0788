// SPDX-License-Identifier: Apache-2.0
// A file system in which each call is dear: it passes everything on to a folder after a pause, as a busy server would.
// Without a cache of the kernel (direct_io), so that each read() and write() of a program is a call.
// Usage: slow_fs FOLDER MICROSECONDS MOUNTPOINT   (stays in the foreground)
#define _GNU_SOURCE
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char* folder;
static long pause_ns;

static const char* real(const char* path) {
    static __thread char made[4096];
    snprintf(made, sizeof(made), "%s%s", folder, path);
    return made;
}
static void pause_a_while(void) {
    const struct timespec length = {pause_ns / 1000000000, pause_ns % 1000000000};
    nanosleep(&length, NULL);
}
static int result(long got) {
    return got < 0 ? -errno : (int)got;
}

static int slow_getattr(const char* path, struct stat* got, struct fuse_file_info* file) {
    pause_a_while();
    return result(file != NULL ? fstat((int)file->fh, got) : lstat(real(path), got));
}
static int slow_open(const char* path, struct fuse_file_info* file) {
    pause_a_while();
    const int fd = open(real(path), file->flags & ~O_DIRECT);
    file->fh = (uint64_t)fd;
    file->direct_io = 1;
    return fd < 0 ? -errno : 0;
}
static int slow_create(const char* path, mode_t mode, struct fuse_file_info* file) {
    pause_a_while();
    const int fd = open(real(path), file->flags | O_CREAT, mode);
    file->fh = (uint64_t)fd;
    file->direct_io = 1;
    return fd < 0 ? -errno : 0;
}
static int slow_read(const char* path, char* data, size_t bytes, off_t at, struct fuse_file_info* file) {
    (void)path;
    pause_a_while();
    return result(pread((int)file->fh, data, bytes, at));
}
static int slow_write(const char* path, const char* data, size_t bytes, off_t at, struct fuse_file_info* file) {
    (void)path;
    pause_a_while();
    return result(pwrite((int)file->fh, data, bytes, at));
}
static int slow_truncate(const char* path, off_t bytes, struct fuse_file_info* file) {
    pause_a_while();
    return result(file != NULL ? ftruncate((int)file->fh, bytes) : truncate(real(path), bytes));
}
static int slow_release(const char* path, struct fuse_file_info* file) {
    pause_a_while();
    (void)path;
    return result(close((int)file->fh));
}
static int slow_unlink(const char* path) {
    pause_a_while();
    return result(unlink(real(path)));
}
/// Also called for a file that is removed while it is open.
static int slow_rename(const char* from, const char* to, unsigned flags) {
    static __thread char source[4096];
    snprintf(source, sizeof(source), "%s%s", folder, from);
    pause_a_while();
    return flags != 0 ? -EINVAL : result(rename(source, real(to)));
}
static int slow_readdir(const char* path, void* list, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info* file,
                        enum fuse_readdir_flags flags) {
    (void)offset, (void)file, (void)flags;
    DIR* directory = opendir(real(path));
    for (struct dirent* entry = NULL; directory != NULL && (entry = readdir(directory)) != NULL;) {
        fill(list, entry->d_name, NULL, 0, 0);
    }
    return directory == NULL ? -errno : closedir(directory);
}
static void* slow_init(struct fuse_conn_info* connection, struct fuse_config* config) {
    connection->max_write = 1 << 20;
    connection->max_read = 1 << 20;
    config->use_ino = 1;
    return NULL;
}

int main(int argc, char** argv) {
    static const struct fuse_operations operations = {.init = slow_init,
                                                      .getattr = slow_getattr,
                                                      .open = slow_open,
                                                      .create = slow_create,
                                                      .read = slow_read,
                                                      .write = slow_write,
                                                      .truncate = slow_truncate,
                                                      .release = slow_release,
                                                      .unlink = slow_unlink,
                                                      .rename = slow_rename,
                                                      .readdir = slow_readdir};
    if (argc != 4) {
        return 2;
    }
    folder = argv[1];
    pause_ns = atol(argv[2]) * 1000;
    char* words[] = {argv[0], "-f", "-o", "max_read=1048576", argv[3], NULL};
    return fuse_main(5, words, &operations, NULL);
}
