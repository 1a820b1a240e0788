// SPDX-License-Identifier: Apache-2.0
#include "intercept/c_streams.hpp"

#include "files/descriptors.hpp"
#include "system/critical.hpp"
#include "system/lock.hpp"
#include "system/memory.hpp"

#include <stdio_ext.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

namespace sonde::intercept {

namespace {

struct Enlarged {
    FILE* stream = nullptr;
    void* buffer = nullptr;
    std::size_t bytes = 0;
};

struct Known {
    settings::Settings* settings = nullptr;  ///< nullptr: no rule asks for it
    system::Lock lock;
    Enlarged streams[256];
    std::size_t memory = 0;  ///< bytes of all of them
};
constinit Known known;

/// Only from front to back: one that both reads and writes, or is mapped, seeks.
bool fits(const char* mode) noexcept {
    for (const char* at = mode; *at != 0 && *at != ','; ++at) {
        if (*at == '+' || *at == 'm') {
            return false;
        }
    }
    return true;
}

/// The rule for it, or nullptr.
const settings::Rule* rule_of_stream(int fd, const char* path) noexcept {
    char absolute[1024];
    const settings::Rule* rule = buffer::rule_of(*known.settings, fd, path, absolute);
    struct stat got {};
    const bool regular = raw::call(SYS_fstat, fd, raw::number(&got)) == 0 && S_ISREG(got.st_mode);
    return rule != nullptr && rule->stdio_alone && regular ? rule : nullptr;
}

Enlarged* place_of(const FILE* stream) noexcept {
    for (Enlarged& one : known.streams) {
        if (one.stream == stream) {
            return &one;
        }
    }
    return nullptr;
}

}  // namespace

void start_c_streams(settings::Settings& settings) noexcept {
    for (std::size_t i = 0; i < settings.count; ++i) {
        known.settings = settings.rules[i].stdio_alone ? &settings : known.settings;
    }
}

bool enlarge(FILE* stream, const char* path, const char* mode) noexcept {
    if (known.settings == nullptr || !fits(mode)) {
        return false;
    }
    const int kept = errno;
    const system::Critical critical;
    bool done = false;
    if (const settings::Rule* rule = rule_of_stream(fileno(stream), path)) {
        system::Hold hold(known.lock);
        if (const Enlarged* again = place_of(stream)) {  // freopen()
            return setvbuf(stream, static_cast<char*>(again->buffer), _IOFBF, again->bytes) == 0;
        }
        Enlarged* const place = place_of(nullptr);
        const std::size_t bytes = rule->size;
        void* const buffer = place != nullptr && known.memory + bytes <= known.settings->limits.memory
                                 ? system::map_bytes(bytes)
                                 : nullptr;
        if (buffer != nullptr && setvbuf(stream, static_cast<char*>(buffer), _IOFBF, bytes) == 0) {
            *place = {stream, buffer, bytes};
            known.memory += bytes;
            done = true;
        } else if (buffer != nullptr) {
            system::unmap_bytes(buffer, bytes);
        }
    }
    errno = kept;
    return done;
}

Closing::Closing(FILE* stream) noexcept {
    if (known.settings == nullptr || stream == nullptr) {
        return;
    }
    const system::Critical critical;
    system::Hold hold(known.lock);
    if (Enlarged* place = place_of(stream)) {
        buffer_ = place->buffer;
        bytes_ = place->bytes;
        known.memory -= bytes_;
        *place = {};
    }
}

Closing::~Closing() {
    if (buffer_ != nullptr) {
        system::unmap_bytes(buffer_, bytes_);
    }
}

void write_out_streams() noexcept {
    if (known.settings == nullptr) {
        return;
    }
    const int kept = errno;
    const system::Critical critical;
    system::Hold hold(known.lock);
    for (Enlarged& one : known.streams) {
        // A thread that holds it may be on its way to our lock: not waited for.
        if (one.stream != nullptr && ftrylockfile(one.stream) == 0) {
            if (__fpending(one.stream) > 0) {
                fflush_unlocked(one.stream);
            }
            funlockfile(one.stream);
        }
    }
    errno = kept;
}

void c_streams_after_fork() noexcept {
    known.lock.reset();
}

}  // namespace sonde::intercept
