// SPDX-License-Identifier: Apache-2.0
// Kinds of calls whose latencies are counted apart.
#pragma once

namespace sonde::meters {

enum CallKind : unsigned {
    kind_read,
    kind_write,
    kind_open,
    kind_fsync,
    kind_close,
    kind_stat,
    kind_remove,
    kind_create,
    kind_mkdir,
    kind_open_close,
    kind_readdir,
    kind_rename,
    kind_rmdir,
    kinds
};

/// As the record names them, in the order of Kind.
inline constexpr const char* kind_names[kinds] = {"read",    "write",  "open",   "fsync", "close",
                                                  "stat",    "remove", "create", "mkdir", "open_close",
                                                  "readdir", "rename", "rmdir"};

}  // namespace sonde::meters
