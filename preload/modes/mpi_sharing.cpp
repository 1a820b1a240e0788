// SPDX-License-Identifier: Apache-2.0
#include "modes/mpi_sharing.hpp"

#include "cache/pages.hpp"
#include "cache/writeback.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "model/table.hpp"
#include "modes/modes.hpp"
#include "system/critical.hpp"

#include <fcntl.h>

namespace sonde::buffer {

namespace {

struct SharedRequest {
    const void* handle = nullptr;
    const char* reason = nullptr;  ///< for release_shared()
    bool is_found = false;         ///< by is_shared()
};
constinit SharedRequest release_request{};  // under the lock of all files

}  // namespace

const char* describe_mpi_objection(const OpenedByMpi& mpi, int flags, const settings::Rule& rule) noexcept {
    if (mpi.ranks <= 0 || mpi.handle == nullptr) {
        return "opened by MPI-IO, and how many ranks share it is not known";
    }
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    return mpi.ranks > 1 && writes && !rule.mpi_disjoint
               ? "opened by MPI-IO for several ranks (mpiio=disjoint says that their parts are disjoint)"
               : nullptr;
}

void share_among_ranks(File& file, const OpenedByMpi& mpi) noexcept {
    if (file.descriptors.descriptions != nullptr && file.mpi_handle != mpi.handle) {
        release_file(file, why_opened_again);
    }
    file.is_shared = true;
    file.mpi_handle = mpi.handle;
}

void drop_pages_read_before(File& file) noexcept {
    close_gate(file);
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        flush_file(file);
        if (file.dirty.first == nullptr && file.descriptors.descriptions != nullptr) {
            drop_all_pages(file);
            const std::int64_t size = read_size_from_kernel(file.descriptors.descriptions->fd);
            file.size = file.append.kernel_size =
                size >= 0 ? size : file.size;  // somebody else may have made it shorter
        }
    }
    open_gate(file);
}

void release_shared(const void* handle, const char* reason) noexcept {
    const system::Critical critical;
    if (!has_registered_descriptors()) {
        return;
    }
    system::LockGuard lock_guard(state.files_lock);
    release_request = {.handle = handle, .reason = reason};
    for_each_file([](File& file) {
        if (file.is_shared && file.mpi_handle == release_request.handle) {
            release_file(file, release_request.reason);
        }
    });
}

bool is_shared(const void* handle) noexcept {
    const system::Critical critical;
    if (!has_registered_descriptors()) {
        return false;
    }
    system::LockGuard lock_guard(state.files_lock);
    release_request = {.handle = handle};
    for_each_file([](File& file) {
        release_request.is_found |= file.is_shared && file.mpi_handle == release_request.handle &&
                                    file.mode.load(std::memory_order_relaxed) != Mode::Released;
    });
    return release_request.is_found;
}

void sync_shared(const void* handle) noexcept {
    const system::Critical critical;
    if (!has_registered_descriptors()) {
        return;
    }
    system::LockGuard lock_guard(state.files_lock);
    release_request = {.handle = handle};
    for_each_file([](File& file) {
        if (file.is_shared && file.mpi_handle == release_request.handle) {
            drop_pages_read_before(file);
        }
    });
}

}  // namespace sonde::buffer
