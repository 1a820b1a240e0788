// SPDX-License-Identifier: Apache-2.0
// A file system that passes its calls on to a folder and refuses what lies behind byte LIMIT of a file with ERRNO.
// ENOSPC and EDQUOT leave a short write before the limit, as the kernel does; EIO refuses the whole call. The free
// space that it states is FREE bytes for a file and FOLDER_FREE bytes for a folder, whatever the folder behind has.
// Usage: failing_storage FOLDER LIMIT ERRNO FREE FOLDER_FREE MOUNTPOINT   (stays in the foreground)
#define _GNU_SOURCE
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char* folder;
static off_t limit;
static int refusal;
static unsigned long long free_bytes, folder_free_bytes;

static const char* in_folder(const char* path) {
    static __thread char joined[4096];
    snprintf(joined, sizeof(joined), "%s%s", folder, path);
    return joined;
}
static int result(long answer) {
    return answer < 0 ? -errno : (int)answer;
}
static int failing_getattr(const char* path, struct stat* status, struct fuse_file_info* file) {
    return result(file != NULL ? fstat((int)file->fh, status) : lstat(in_folder(path), status));
}
static int failing_create(const char* path, mode_t mode, struct fuse_file_info* file) {
    const int fd = open(in_folder(path), (file->flags & ~(O_DIRECT | O_APPEND)) | O_CREAT, mode);
    file->fh = (uint64_t)fd;
    return fd < 0 ? -errno : 0;
}
static int failing_open(const char* path, struct fuse_file_info* file) {
    return failing_create(path, 0, file);
}
static int failing_read(const char* path, char* data, size_t bytes, off_t offset, struct fuse_file_info* file) {
    (void)path;
    if (refusal == EIO && offset + (off_t)bytes > limit) {
        struct stat status;
        if (fstat((int)file->fh, &status) == 0 && status.st_size > limit) {
            return -EIO;
        }
    }
    return result(pread((int)file->fh, data, bytes, offset));
}
static int failing_write(const char* path, const char* data, size_t bytes, off_t offset, struct fuse_file_info* file) {
    (void)path;
    if (offset + (off_t)bytes > limit) {
        if (refusal == EIO || offset >= limit) {
            return -refusal;
        }
        bytes = (size_t)(limit - offset);
    }
    return result(pwrite((int)file->fh, data, bytes, offset));
}
static int failing_truncate(const char* path, off_t bytes, struct fuse_file_info* file) {
    return result(file != NULL ? ftruncate((int)file->fh, bytes) : truncate(in_folder(path), bytes));
}
static int failing_fsync(const char* path, int only_data, struct fuse_file_info* file) {
    (void)path, (void)only_data;
    return result(fsync((int)file->fh));
}
static int failing_release(const char* path, struct fuse_file_info* file) {
    (void)path;
    return result(close((int)file->fh));
}
static int failing_mkdir(const char* path, mode_t mode) {
    return result(mkdir(in_folder(path), mode));
}
static int failing_readdir(const char* path, void* list, fuse_fill_dir_t fill, off_t offset,
                           struct fuse_file_info* file, enum fuse_readdir_flags flags) {
    (void)offset, (void)file, (void)flags;
    DIR* directory = opendir(in_folder(path));
    for (struct dirent* entry = NULL; directory != NULL && (entry = readdir(directory)) != NULL;) {
        fill(list, entry->d_name, NULL, 0, 0);
    }
    return directory == NULL ? -errno : closedir(directory);
}
static int failing_unlink(const char* path) {
    return result(unlink(in_folder(path)));
}
static int failing_statfs(const char* path, struct statvfs* status) {
    struct stat about;
    const int is_folder = lstat(in_folder(path), &about) == 0 && S_ISDIR(about.st_mode);
    *status = (struct statvfs){.f_bsize = 1 << 20, .f_frsize = 4096, .f_namemax = 255, .f_files = 1000, .f_ffree = 500};
    status->f_blocks = 1ULL << 30;
    status->f_bfree = status->f_bavail = (is_folder ? folder_free_bytes : free_bytes) / 4096;
    return 0;
}

int main(int argc, char** argv) {
    static const struct fuse_operations operations = {.getattr = failing_getattr,
                                                      .open = failing_open,
                                                      .create = failing_create,
                                                      .read = failing_read,
                                                      .write = failing_write,
                                                      .truncate = failing_truncate,
                                                      .fsync = failing_fsync,
                                                      .release = failing_release,
                                                      .unlink = failing_unlink,
                                                      .mkdir = failing_mkdir,
                                                      .readdir = failing_readdir,
                                                      .statfs = failing_statfs};
    if (argc != 7) {
        return 2;
    }
    folder = argv[1];
    limit = atoll(argv[2]);
    refusal = atoi(argv[3]);
    free_bytes = strtoull(argv[4], NULL, 10);
    folder_free_bytes = strtoull(argv[5], NULL, 10);
    char* arguments[] = {argv[0], "-f", "-o", "allow_other,default_permissions", argv[6], NULL};
    return fuse_main(5, arguments, &operations, NULL);
}
