// SPDX-License-Identifier: Apache-2.0
// Loaded before libc on one "node": its clocks stand elsewhere and run at another speed than those of the other nodes.
// Time namespaces move CLOCK_MONOTONIC by an offset, but no CLOCK_REALTIME, and change no speed.
//   CLOCK_AHEAD_NS  how far both clocks are ahead at CLOCK_ORIGIN_NS
//   CLOCK_PPM       how much faster they run, in millionths
//   CLOCK_ORIGIN_NS a time of the true CLOCK_MONOTONIC, the same for all processes of the node
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

typedef int (*get_time)(clockid_t, struct timespec*);
typedef int (*sleep_until)(clockid_t, int, const struct timespec*, struct timespec*);

static const int64_t second = 1000000000;
static get_time real_get;
static int64_t ahead, origin;
static double rate;

static int64_t number(const char* name) {
    const char* text = getenv(name);
    return text != NULL ? atoll(text) : 0;
}

__attribute__((constructor)) static void begin(void) {
    real_get = (get_time)dlsym(RTLD_NEXT, "clock_gettime");
    ahead = number("CLOCK_AHEAD_NS");
    origin = number("CLOCK_ORIGIN_NS");
    rate = (double)number("CLOCK_PPM") / 1e6;
}

static int64_t monotonic(void) {
    struct timespec now;
    real_get(CLOCK_MONOTONIC, &now);
    return now.tv_sec * second + now.tv_nsec;
}

// What is added to a true time when the true CLOCK_MONOTONIC shows `at`.
static int64_t shift(int64_t at) { return ahead + (int64_t)(rate * (double)(at - origin)); }

int clock_gettime(clockid_t clock, struct timespec* time) {
    if (real_get == NULL) {
        begin();
    }
    const int result = real_get(clock, time);
    if (result == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME)) {
        const int64_t shown = time->tv_sec * second + time->tv_nsec + shift(monotonic());
        time->tv_sec = shown / second;
        time->tv_nsec = shown % second;
    }
    return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec* until, struct timespec* left) {
    const sleep_until real = (sleep_until)dlsym(RTLD_NEXT, "clock_nanosleep");
    if (clock != CLOCK_MONOTONIC || (flags & TIMER_ABSTIME) == 0) {
        return real(clock, flags, until, left);
    }
    const int64_t shown = until->tv_sec * second + until->tv_nsec;
    const int64_t wanted = origin + (int64_t)((double)(shown - ahead - origin) / (1 + rate));
    const struct timespec true_time = {wanted / second, wanted % second};
    return real(clock, flags, &true_time, left);
}

time_t time(time_t* out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
