// SPDX-License-Identifier: Apache-2.0
// Operations that a driver submits to the machine, and their completion.
#pragma once

#include "kernel/time.hpp"

#include <cstdint>

namespace sonde::simulate {

enum class ModelCallKind : std::uint8_t {
    open,
    create,
    close,
    read,
    write,
    fsync,
    stat,
    remove,
    mkdir,
    rmdir,
    rename,
    readdir
};

using FileId = std::uint32_t;
using StreamId = std::uint32_t;

/// One call of one stream (a task, or an open handle of a program). A stream makes its calls one after the other,
/// unless it submits several before it waits.
struct ModelOperation {
    ModelCallKind kind = ModelCallKind::read;
    bool direct = false;  ///< bypasses the client's page cache
    bool sync = false;    ///< a write that is durable when it returns
    StreamId stream = 0;
    FileId file = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  ///< bytes; readdir: entries; create: bytes that the file will hold
    std::uint64_t tag = 0;     ///< returned in CompletedOperation
};

struct CompletedOperation {
    std::uint64_t tag = 0;
    Time end = 0;
    Time cpu_time = 0;  ///< processor time that the client's node spent on the call
    int error = 0;      ///< errno; 0: the call succeeded
};

class Listener {
 public:
    Listener() = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    virtual ~Listener() = default;
    virtual void on_completion(const CompletedOperation& completed) = 0;
    /// An alarm of Machine::set_alarm() is due.
    virtual void on_alarm(Time time, std::uint64_t tag) = 0;
};

/// The layout of a file: bytes 0 … size-1 are on targets[start], the next `size` on the following target, over `count`
/// targets in a ring.
struct ModelLayout {
    std::uint64_t size = 1U << 20U;  ///< bytes of a stripe
    std::uint32_t count = 1;
    std::uint32_t start = 0;  ///< index of the target that has the first byte
};

}  // namespace sonde::simulate
