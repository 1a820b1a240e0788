// SPDX-License-Identifier: Apache-2.0
// Allocates memory from the kernel, because the program's malloc() may be the caller of the intercepted write.
#pragma once

#include "system/lock.hpp"

#include <sys/mman.h>
#include <cstddef>
#include <new>

namespace sonde::system {

/// Returns zeroed pages, or nullptr. `reserve_only`: address space that uses memory only when it is touched.
inline void* map_bytes(std::size_t bytes, bool reserve_only = false) noexcept {
    const long flags = MAP_PRIVATE | MAP_ANONYMOUS | (reserve_only ? MAP_NORESERVE : 0);
    const long address = raw::call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, flags, -1, 0);
    return address < 0 ? nullptr : reinterpret_cast<void*>(address);
}

inline void unmap_bytes(void* where, std::size_t bytes) noexcept {
    raw::call(SYS_munmap, raw::pointer_to_number(where), static_cast<long>(bytes));
}

/// Objects of one type whose memory is never given back: a stale pointer always points to some T, so a thread that lost
/// a race can look and see that it lost. Reused in the order last freed, first taken.
template <class T>
class Slab {
 public:
    /// Returns an initialized object (T may keep members of its previous use); nullptr without memory.
    T* allocate() noexcept {
        LockGuard lock_guard(lock_);
        T* object = free_;
        if (object == nullptr) {
            return make();
        }
        free_ = object->next_free;
        return object;
    }
    void deallocate(T* back) noexcept {
        LockGuard lock_guard(lock_);
        back->next_free = free_;
        free_ = back;
    }
    void reset_lock() noexcept { lock_.reset(); }

 private:
    /// One at a time: memory that no object needed yet is not touched, which costs more than making it.
    T* make() noexcept {
        constexpr std::size_t bytes = sizeof(T) * 16 > 65536 ? sizeof(T) * 16 : 65536;
        if (bytes_left_ < sizeof(T)) {
            next_object_ = static_cast<char*>(map_bytes(bytes));
            bytes_left_ = next_object_ != nullptr ? bytes : 0;
        }
        if (next_object_ == nullptr) {
            return nullptr;
        }
        void* const address = next_object_;
        next_object_ += sizeof(T);
        bytes_left_ -= sizeof(T);
        return new (address) T{};
    }
    Lock lock_;
    T* free_ = nullptr;
    char* next_object_ = nullptr;  ///< of the next object that was never made before
    std::size_t bytes_left_ = 0;   ///< bytes there
};

}  // namespace sonde::system
