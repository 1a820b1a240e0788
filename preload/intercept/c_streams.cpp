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

struct EnlargedStream {
    FILE* stream = nullptr;
    void* buffer = nullptr;
    std::size_t bytes = 0;
};

struct StreamRegistry {
    settings::Settings* settings = nullptr;  ///< nullptr: no rule asks for it
    system::Lock lock;
    EnlargedStream streams[256];
    std::size_t memory = 0;  ///< bytes of all of them
};
constinit StreamRegistry registry;

/// Only streams that access the file front to back get a larger buffer; modes with + or m seek.
bool is_mode_enlargeable(const char* mode) noexcept {
    for (const char* letter = mode; *letter != 0 && *letter != ','; ++letter) {
        if (*letter == '+' || *letter == 'm') {
            return false;
        }
    }
    return true;
}

/// The rule for it, or nullptr.
const settings::Rule* find_rule_of_stream(int fd, const char* path) noexcept {
    char absolute[1024];
    const settings::Rule* rule = buffer::find_rule_of_descriptor(*registry.settings, fd, path, absolute);
    struct stat status {};
    const bool regular = raw::call(SYS_fstat, fd, raw::pointer_to_number(&status)) == 0 && S_ISREG(status.st_mode);
    return rule != nullptr && rule->only_stdio_access && regular ? rule : nullptr;
}

EnlargedStream* find_stream_slot(const FILE* stream) noexcept {
    for (EnlargedStream& entry : registry.streams) {
        if (entry.stream == stream) {
            return &entry;
        }
    }
    return nullptr;
}

}  // namespace

void start_c_streams(settings::Settings& settings) noexcept {
    for (std::size_t i = 0; i < settings.rule_count; ++i) {
        registry.settings = settings.rules[i].only_stdio_access ? &settings : registry.settings;
    }
}

bool enlarge_stream_buffer(FILE* stream, const char* path, const char* mode) noexcept {
    if (registry.settings == nullptr || !is_mode_enlargeable(mode)) {
        return false;
    }
    const int saved_errno = errno;
    const system::Critical critical;
    bool done = false;
    if (const settings::Rule* rule = find_rule_of_stream(fileno(stream), path)) {
        system::LockGuard lock_guard(registry.lock);
        if (const EnlargedStream* again = find_stream_slot(stream)) {  // freopen()
            return setvbuf(stream, static_cast<char*>(again->buffer), _IOFBF, again->bytes) == 0;
        }
        EnlargedStream* const entry = find_stream_slot(nullptr);
        const std::size_t bytes = rule->buffer_bytes;
        void* const buffer = entry != nullptr && registry.memory + bytes <= registry.settings->limits.memory
                                 ? system::map_bytes(bytes)
                                 : nullptr;
        if (buffer != nullptr && setvbuf(stream, static_cast<char*>(buffer), _IOFBF, bytes) == 0) {
            *entry = {stream, buffer, bytes};
            registry.memory += bytes;
            done = true;
        } else if (buffer != nullptr) {
            system::unmap_bytes(buffer, bytes);
        }
    }
    errno = saved_errno;
    return done;
}

ClosingStream::ClosingStream(FILE* stream) noexcept {
    if (registry.settings == nullptr || stream == nullptr) {
        return;
    }
    const system::Critical critical;
    system::LockGuard lock_guard(registry.lock);
    if (EnlargedStream* entry = find_stream_slot(stream)) {
        buffer_ = entry->buffer;
        bytes_ = entry->bytes;
        registry.memory -= bytes_;
        *entry = {};
    }
}

ClosingStream::~ClosingStream() {
    if (buffer_ != nullptr) {
        system::unmap_bytes(buffer_, bytes_);
    }
}

void write_out_streams() noexcept {
    if (registry.settings == nullptr) {
        return;
    }
    const int saved_errno = errno;
    const system::Critical critical;
    system::LockGuard lock_guard(registry.lock);
    for (EnlargedStream& entry : registry.streams) {
        // Does not wait for a locked stream, because its thread may wait for our lock.
        if (entry.stream != nullptr && ftrylockfile(entry.stream) == 0) {
            if (__fpending(entry.stream) > 0) {
                fflush_unlocked(entry.stream);
            }
            funlockfile(entry.stream);
        }
    }
    errno = saved_errno;
}

void reset_c_streams_after_fork() noexcept {
    registry.lock.reset();
}

}  // namespace sonde::intercept
