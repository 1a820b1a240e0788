// SPDX-License-Identifier: Apache-2.0
// What is asked of the machine, and what it answers. The same for both drivers: in virtual time the next event is
// handled at once, in real time when the clock has come so far.
#pragma once

#include "kernel/time.hpp"

#include <cstdint>

namespace sonde::simulate {

enum class Call : std::uint8_t { open, create, close, read, write, fsync, stat, remove, mkdir, rmdir, rename, readdir };
constexpr const char* call_names[] = {"open", "create", "close", "read",  "write",  "fsync",
                                      "stat", "remove", "mkdir", "rmdir", "rename", "readdir"};

using FileId = std::uint32_t;
using StreamId = std::uint32_t;

/// One call of one stream (a task, or an open handle of a program): its calls are made one after the other, unless it
/// submits several and waits later.
struct Operation {
    Call call = Call::read;
    bool direct = false;  ///< past the client's page cache
    bool sync = false;    ///< a write that is durable when it returns
    StreamId stream = 0;
    FileId file = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  ///< bytes; of readdir: entries; of create: bytes that the file will hold
    std::uint64_t tag = 0;     ///< whatever the caller wants back
};

struct Done {
    std::uint64_t tag = 0;
    Time at = 0;
    Time cpu = 0;  ///< processor time that the client's node spent on the call
};

class Listener {
 public:
    Listener() = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    virtual ~Listener() = default;
    virtual void done(const Done& what) = 0;
    /// An alarm set by Machine::wake().
    virtual void woken(Time at, std::uint64_t tag) = 0;
};

/// How a file lies on the targets: bytes 0 … size-1 on targets[start], the next on the following one, `count` in a
/// ring.
struct Layout {
    std::uint64_t size = 1U << 20U;
    std::uint32_t count = 1;
    std::uint32_t start = 0;  ///< index of the target that has the first byte
};

}  // namespace sonde::simulate
