// SPDX-License-Identifier: Apache-2.0
// Does to libc's mmap() what libraries of MPI do to watch memory: overwrites its beginning with a jump to a function of
// its own, which makes the system call itself. Then maps a file that was just written.
// Exit code 77 where code cannot be overwritten.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int calls;

static void* in_between(void* where, size_t bytes, int protection, int flags, int fd, off_t at) {
    ++calls;
    return (void*)syscall(SYS_mmap, where, bytes, protection, flags, fd, at);
}

static int patch(const char* name) {
    unsigned char* code = dlsym(dlopen("libc.so.6", RTLD_LAZY), name);
    const uintptr_t page = (uintptr_t)code & ~(uintptr_t)4095;
    if (code == NULL || mprotect((void*)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        return 77;
    }
#if defined(__x86_64__)
    const uint64_t target = (uint64_t)(uintptr_t)in_between;
    memcpy(code, "\x49\xbb", 2);  // mov r11, target; jmp r11
    memcpy(code + 2, &target, 8);
    memcpy(code + 10, "\x41\xff\xe3", 3);
    return 0;
#else
    return 77;
#endif
}

int main(void) {
    if (patch("mmap") != 0) {
        return 77;
    }
    const int fd = open("data", O_RDWR | O_CREAT, 0644);
    if (write(fd, "written", 7) != 7) {
        return 1;
    }
    const char* map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        return 1;
    }
    printf("%.7s %s\n", map, calls > 0 ? "in between" : "directly");
    close(fd);
    return 0;
}
