// SPDX-License-Identifier: Apache-2.0
// A driver of GPUs for tests, whose memory is that of the host under other addresses. It is as strict as the real one:
// not usable after fork, not without a context of the thread, and copies happen when the stream is waited for.
// FAKE_CUDA_GPUS: their number. FAKE_CUDA_FAIL: the function that fails. FAKE_CUDA_CORRUPT: a byte of each copy to a
// GPU changes. FAKE_CUDA_LOG: file that gets a line when a process gives its last context back: bytes to and from GPU
// 0, to and from GPU 1, and how many allocations, registered buffers and streams are left. FAKE_CUDA_INIT_LOG: file
// that gets a line with its number from each process that initializes the driver.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPU_BIT (1ULL << 62)
enum { success = 0, invalid_value = 1, out_of_memory = 2, not_initialized = 3, invalid_device = 101, no_context = 201 };

typedef struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    int is_upload;
} Copy;

struct CUctx_st;

struct CUstream_st {
    Copy copies[256];
    int count;
};

static pid_t started_in;
static __thread int current_gpu = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long uploaded[16], downloaded[16];
static int allocations, registrations, streams, contexts;

static int fails(const char* name) {
    const char* failing = getenv("FAKE_CUDA_FAIL");
    return failing != NULL && strcmp(failing, name) == 0;
}

static int count_gpus(void) {
    const char* text = getenv("FAKE_CUDA_GPUS");
    return text == NULL ? 2 : atoi(text);
}

static void write_log(void) {
    const char* path = getenv("FAKE_CUDA_LOG");
    FILE* log = path == NULL ? NULL : fopen(path, "a");
    if (log != NULL) {
        fprintf(log, "%llu %llu %llu %llu %d %d %d\n", uploaded[0], downloaded[0], uploaded[1], downloaded[1],
                allocations, registrations, streams);
        fclose(log);
    }
    memset(uploaded, 0, sizeof uploaded);
    memset(downloaded, 0, sizeof downloaded);
}

static void write_init_log(void) {
    const char* path = getenv("FAKE_CUDA_INIT_LOG");
    FILE* log = path == NULL ? NULL : fopen(path, "a");
    if (log != NULL) {
        fprintf(log, "%d\n", (int)getpid());
        fclose(log);
    }
}

static int check_thread(void) {
    if (started_in != getpid()) {
        return not_initialized;
    }
    return current_gpu < 0 ? no_context : success;
}

static void add(int* counter, int by) {
    pthread_mutex_lock(&lock);
    *counter += by;
    pthread_mutex_unlock(&lock);
}

int cuInit(unsigned flags) {
    if (fails("cuInit") || flags != 0) {
        return 999;
    }
    pthread_mutex_lock(&lock);
    if (started_in != getpid()) {
        started_in = getpid();
        write_init_log();
    }
    pthread_mutex_unlock(&lock);
    return success;
}

int cuGetErrorString(int error, const char** text) {
    *text = error == out_of_memory ? "out of memory" : error == 999 ? "unknown error" : "other error";
    return success;
}

int cuDeviceGetCount(int* count) {
    *count = count_gpus();
    return started_in == getpid() ? success : not_initialized;
}

int cuDeviceGet(int* device, int number) {
    *device = number + 100;  // handle and number are different things
    return number < count_gpus() ? success : invalid_device;
}

int cuDevicePrimaryCtxRetain(struct CUctx_st** context, int device) {
    *context = (struct CUctx_st*)(size_t)(device + 1);
    add(&contexts, 1);
    return fails("cuDevicePrimaryCtxRetain") ? out_of_memory : success;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    pthread_mutex_lock(&lock);
    if (--contexts == 0) {
        write_log();
    }
    pthread_mutex_unlock(&lock);
    return success;
}

int cuCtxSetCurrent(struct CUctx_st* context) {
    current_gpu = (int)(size_t)context - 101;
    return success;
}

int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
    const int result = check_thread();
    if (result != success || fails("cuMemAlloc")) {
        return result != success ? result : out_of_memory;
    }
    *address = (unsigned long long)(size_t)malloc(bytes) ^ GPU_BIT;
    add(&allocations, 1);
    return success;
}

int cuMemFree_v2(unsigned long long address) {
    free((void*)(size_t)(address ^ GPU_BIT));
    add(&allocations, -1);
    return check_thread();
}

int cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
    (void)flags;
    if (fails("cuMemHostRegister") || bytes == 0 || (size_t)address % 4096 != 0) {
        return invalid_value;
    }
    add(&registrations, 1);
    return check_thread();
}

int cuMemHostUnregister(void* address) {
    *(volatile char*)address;  // must still be mapped
    add(&registrations, -1);
    return check_thread();
}

int cuStreamCreate(struct CUstream_st** stream, unsigned flags) {
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    add(&streams, 1);
    return check_thread();
}

int cuStreamDestroy_v2(struct CUstream_st* stream) {
    free(stream);
    add(&streams, -1);
    return success;
}

static int enqueue(struct CUstream_st* stream, const Copy* copy) {
    const int result = check_thread();
    if (result == success) {
        stream->copies[stream->count++] = *copy;
    }
    return result;
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, struct CUstream_st* stream) {
    const Copy copy = {(void*)(size_t)(to ^ GPU_BIT), from, bytes, 1};
    return fails("cuMemcpyHtoDAsync") ? 999 : enqueue(stream, &copy);
}

int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, struct CUstream_st* stream) {
    const Copy copy = {to, (const void*)(size_t)(from ^ GPU_BIT), bytes, 0};
    return fails("cuMemcpyDtoHAsync") ? 999 : enqueue(stream, &copy);
}

int cuStreamSynchronize(struct CUstream_st* stream) {
    if (fails("cuStreamSynchronize")) {
        return 999;
    }
    for (int i = 0; i < stream->count; ++i) {
        const Copy* copy = &stream->copies[i];
        memcpy(copy->to, copy->from, copy->bytes);
        if (copy->is_upload && getenv("FAKE_CUDA_CORRUPT") != NULL) {
            ((char*)copy->to)[copy->bytes / 2] ^= 1;
        }
        pthread_mutex_lock(&lock);
        (copy->is_upload ? uploaded : downloaded)[current_gpu] += copy->bytes;
        pthread_mutex_unlock(&lock);
    }
    stream->count = 0;
    return check_thread();
}
