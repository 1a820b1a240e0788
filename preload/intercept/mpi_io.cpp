// SPDX-License-Identifier: Apache-2.0
#include "intercept/mpi_io.hpp"

#include "intercept/errors.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <cstring>

namespace sonde::intercept {

namespace {

/// The files that an MPI call has opened so far.
struct MpiOpenCall {
    struct OpenedFile {
        int fd, flags;
        dev_t device;
        ino_t inode;
        bool is_data_file;  ///< not one that MPI-IO has for itself, such as the one with the offset that ranks share
    };
    static constexpr int max_files = 8;
    const char* name;  ///< as given to MPI_File_open; nullptr for other calls
    MpiOpenCall* enclosing_call;
    OpenedFile files[max_files];
    int count = 0;
};
constinit thread_local MpiOpenCall* current_mpi_open __attribute__((tls_model("initial-exec"))) = nullptr;

const char* strip_path_and_driver(const char* path) noexcept {
    const char* slash = std::strrchr(path, '/');
    const char* name = slash != nullptr ? slash + 1 : path;
    const char* colon = std::strchr(name, ':');  // "ufs:data"
    return slash == nullptr && colon != nullptr ? colon + 1 : name;
}

bool read_identity(int fd, dev_t& device, ino_t& inode) noexcept {
    struct stat status {};
    if (raw::call(SYS_fstat, fd, raw::pointer_to_number(&status)) != 0 || !S_ISREG(status.st_mode)) {
        return false;
    }
    device = status.st_dev;
    inode = status.st_ino;
    return true;
}

/// Registers the descriptors that still refer to the files that the MPI call opened.
void adopt_mpi_descriptors(const MpiOpenCall& done, const buffer::OpenedByMpi& mpi) noexcept {
    for (int i = 0; i < done.count; ++i) {
        const MpiOpenCall::OpenedFile& file = done.files[i];
        dev_t device = 0;
        ino_t inode = 0;
        bool again = false;
        for (int later = i + 1; later < done.count; ++later) {
            again |= done.files[later].fd == file.fd;
        }
        if (again || !read_identity(file.fd, device, inode) || device != file.device || inode != file.inode) {
            continue;
        }
        const char* const reason = file.is_data_file ? nullptr : "MPI-IO has it for itself";
        const char* const path = done.name != nullptr ? done.name : "?";
        buffer::adopt_descriptor({.fd = file.fd, .flags = file.flags, .path = path, .reason = reason, .mpi = &mpi});
    }
}

/// Looks up a function in the MPI library that the caller uses.
template <class Function>
Function* look_up_mpi_function(const char* name, const void* caller) noexcept {
    return reinterpret_cast<Function*>(look_up_in_caller_libraries(name, caller));
}

/// Returns the number of ranks that opened a file; 0 if unknown.
int count_ranks_of_file(long handle, const void* caller) noexcept {
    auto* const get_group = look_up_mpi_function<int(long, long*)>("PMPI_File_get_group", caller);
    auto* const size_of = look_up_mpi_function<int(long, int*)>("PMPI_Group_size", caller);
    auto* const free_group = look_up_mpi_function<int(long*)>("PMPI_Group_free", caller);
    long group = 0;
    int ranks = 0;
    if (get_group == nullptr || size_of == nullptr || free_group == nullptr || get_group(handle, &group) != 0) {
        return 0;
    }
    ranks = size_of(group, &ranks) == 0 ? ranks : 0;
    free_group(&group);
    return ranks;
}

/// Returns whether the MPI type has holes: independent writes then also rewrite bytes of other ranks.
bool has_holes(long type, const void* caller) noexcept {
    auto* const size_of = look_up_mpi_function<int(long, int*)>("PMPI_Type_size", caller);
    auto* const extent_of = look_up_mpi_function<int(long, long*, long*)>("PMPI_Type_get_extent", caller);
    int bytes = 0;
    long lower = 0;
    long extent = 0;
    return size_of == nullptr || extent_of == nullptr || size_of(type, &bytes) != 0 ||
           extent_of(type, &lower, &extent) != 0 || lower != 0 || extent != bytes;
}

const void* to_pointer(long handle) noexcept {
    return reinterpret_cast<const void*>(handle);
}

class MpiOpenScope {
 public:
    explicit MpiOpenScope(const char* name) noexcept
        : opening_{.name = name, .enclosing_call = current_mpi_open, .files = {}} {
        current_mpi_open = &opening_;
    }
    ~MpiOpenScope() {
        current_mpi_open = opening_.enclosing_call;
        if (opening_.count > 0) {
            const int saved_errno = errno;
            adopt_mpi_descriptors(opening_, mpi_);
            errno = saved_errno;
        }
    }
    MpiOpenScope(const MpiOpenScope&) = delete;
    MpiOpenScope& operator=(const MpiOpenScope&) = delete;

    /// MPI_File_open went well.
    void set_mpi_handle(long handle, const void* caller) noexcept {
        if (opening_.count > 0) {
            mpi_ = {.ranks = count_ranks_of_file(handle, caller), .handle = to_pointer(handle)};
        }
    }

 private:
    MpiOpenCall opening_;
    buffer::OpenedByMpi mpi_{.ranks = 0, .handle = nullptr};
};

template <class Real>
long open_file(const char* name, const long* handle, const void* caller, Real real) {
    MpiOpenScope inside(name);
    const long done = real();
    if (static_cast<int>(done) == 0 && handle != nullptr) {
        inside.set_mpi_handle(*handle, caller);
    }
    return done;
}

constexpr const char* why_collective = "used by collective calls of MPI-IO, which make large transfers themselves";
constexpr const char* why_shared_offset = "the ranks share an offset of MPI-IO";
constexpr const char* why_holes =
    "its view has holes, for which MPI-IO reads and writes what belongs to others: use collective calls";
constexpr const char* why_atomic = "MPI-IO is in atomic mode";

/// A collective call: each rank releases the file before it.
template <class Real>
long release_shared_before_call(long handle, const char* reason, Real real) {
    if (buffer::has_registered_descriptors()) [[unlikely]] {
        buffer::release_shared(to_pointer(handle), reason);
    }
    const MpiOpenScope inside(nullptr);
    return real();
}

template <class Real>
long set_view(long handle, long type, const void* caller, Real real) {
    const long done = real();
    if (static_cast<int>(done) == 0 && buffer::has_registered_descriptors() && buffer::is_shared(to_pointer(handle)) &&
        has_holes(type, caller)) [[unlikely]] {
        buffer::release_shared(to_pointer(handle), why_holes);
    }
    return done;
}

template <class Real>
long set_atomicity(long handle, long flag, Real real) {
    if (static_cast<int>(flag) != 0 && buffer::has_registered_descriptors()) [[unlikely]] {
        buffer::release_shared(to_pointer(handle), why_atomic);
    }
    return real();
}

/// MPI_File_sync, and what gives the file another size: what we hold arrives before, and what others did is seen
/// afterwards.
template <class Real>
long synchronize(long handle, Real real) {
    if (!buffer::has_registered_descriptors()) [[likely]] {
        return real();
    }
    buffer::sync_shared(to_pointer(handle));
    const long done = real();
    buffer::sync_shared(to_pointer(handle));
    return done;
}

}  // namespace

bool is_left_to_mpi_io(int fd, int flags, const char* path) noexcept {
    if (current_mpi_open == nullptr) [[likely]] {
        return false;
    }
    dev_t device = 0;
    ino_t inode = 0;
    if (!read_identity(fd, device, inode)) {
        return true;
    }
    const bool is_the_file =
        current_mpi_open->name != nullptr && path != nullptr &&
        std::strcmp(strip_path_and_driver(path), strip_path_and_driver(current_mpi_open->name)) == 0;
    if (current_mpi_open->count < MpiOpenCall::max_files) {
        current_mpi_open->files[current_mpi_open->count++] = {fd, flags, device, inode, is_the_file};
    }
    return true;
}

}  // namespace sonde::intercept

using sonde::intercept::open_file;
using sonde::intercept::release_shared_before_call;
using sonde::intercept::set_atomicity;
using sonde::intercept::set_view;
using sonde::intercept::synchronize;

#define SONDE_TOGETHER(name, reason)                                                                            \
    long wrap_##name(long a, long b, long c, long d, long e, long f) {                                          \
        auto* const real = NEXT_OF_CALLER(name);                                                                \
        return release_shared_before_call(a, sonde::intercept::reason, [=] { return real(a, b, c, d, e, f); }); \
    }
#define SONDE_COLLECTIVE(result, name, parameters) SONDE_TOGETHER(name, why_collective)
#define SONDE_SHARED_OFFSET(result, name, parameters) SONDE_TOGETHER(name, why_shared_offset)
#define SONDE_SYNCHRONIZE(result, name, parameters)                    \
    long wrap_##name(long a, long b, long c, long d, long e, long f) { \
        auto* const real = NEXT_OF_CALLER(name);                       \
        return synchronize(a, [=] { return real(a, b, c, d, e, f); }); \
    }
SONDE_CALLS_MPI_COLLECTIVE(SONDE_COLLECTIVE)
SONDE_CALLS_MPI_SHARED_OFFSET(SONDE_SHARED_OFFSET)
SONDE_CALLS_MPI_SYNC(SONDE_SYNCHRONIZE)

#define SONDE_FOR_BOTH(X) X(MPI) X(PMPI)
#define SONDE_ONE_RANK(prefix)                                                                      \
    long wrap_##prefix##_File_open(long a, long b, long c, long d, long e, long f) {                \
        auto* const real = NEXT_OF_CALLER(prefix##_File_open);                                      \
        return open_file(reinterpret_cast<const char*>(b), reinterpret_cast<const long*>(e),        \
                         __builtin_return_address(0), [=] { return real(a, b, c, d, e, f); });      \
    }                                                                                               \
    long wrap_##prefix##_File_set_view(long a, long b, long c, long d, long e, long f) {            \
        auto* const real = NEXT_OF_CALLER(prefix##_File_set_view);                                  \
        return set_view(a, d, __builtin_return_address(0), [=] { return real(a, b, c, d, e, f); }); \
    }                                                                                               \
    long wrap_##prefix##_File_set_atomicity(long a, long b, long c, long d, long e, long f) {       \
        auto* const real = NEXT_OF_CALLER(prefix##_File_set_atomicity);                             \
        return set_atomicity(a, b, [=] { return real(a, b, c, d, e, f); });                         \
    }
SONDE_FOR_BOTH(SONDE_ONE_RANK)
