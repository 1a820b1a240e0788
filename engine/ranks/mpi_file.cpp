// SPDX-License-Identifier: Apache-2.0
#include "ranks/mpi_file.hpp"
#include "ranks/mpi_waiting.hpp"

#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

/// The datatype of the view is stored because MPI uses it while the file is open.
struct SondeMpiFile {
    MPI_File handle = MPI_FILE_NULL;
    MPI_Datatype view = MPI_DATATYPE_NULL;
    bool collective = false;
    std::string path;
};

namespace sonde::ranks::mpi {
namespace {

/// A datatype of `bytes` bytes, which may exceed the int range of MPI counts.
int make_bytes_type(std::uint64_t bytes, MPI_Datatype& type) {
    if (bytes <= INT_MAX) {
        return MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type);
    }
    constexpr std::uint64_t unit = 1U << 30U;
    MPI_Datatype gibibyte_type = MPI_DATATYPE_NULL;
    if (const int code = MPI_Type_contiguous(static_cast<int>(unit), MPI_BYTE, &gibibyte_type); code != MPI_SUCCESS) {
        return code;
    }
    int lengths[2] = {static_cast<int>(bytes / unit), static_cast<int>(bytes % unit)};
    MPI_Aint places[2] = {0, static_cast<MPI_Aint>(bytes / unit * unit)};
    MPI_Datatype types[2] = {gibibyte_type, MPI_BYTE};
    const int code = MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_free(&gibibyte_type);
    return code;
}

/// Count and type for a transfer of `bytes` bytes. The caller frees `type` unless it is MPI_BYTE.
int make_transfer_type(std::size_t bytes, int& count, MPI_Datatype& type) {
    type = MPI_BYTE;
    count = static_cast<int>(bytes);
    if (bytes <= INT_MAX) {
        return MPI_SUCCESS;
    }
    count = 1;
    const int code = make_bytes_type(bytes, type);
    return code == MPI_SUCCESS ? MPI_Type_commit(&type) : code;
}

int set_view(SondeMpiFile& file, const SondeMpiFileRequest& request) {
    MPI_Datatype block = MPI_DATATYPE_NULL;
    int code = make_bytes_type(request.block, block);
    if (code == MPI_SUCCESS) {
        code = MPI_Type_create_resized(block, 0, static_cast<MPI_Aint>(request.stride), &file.view);
        MPI_Type_free(&block);
    }
    if (code == MPI_SUCCESS) {
        code = MPI_Type_commit(&file.view);
    }
    if (code == MPI_SUCCESS) {
        char native[] = "native";
        code = MPI_File_set_view(file.handle, static_cast<MPI_Offset>(request.first), MPI_BYTE, file.view, native,
                                 MPI_INFO_NULL);
    }
    return code;
}

/// Returns 0, or -EOPNOTSUPP in a thread from which this MPI library allows no files.
int check_thread() {
    int main_thread = 1;
    MPI_Is_thread_main(&main_thread);
    return one_thread_only && main_thread == 0
               ? report_mpi_error(MPI_ERR_UNSUPPORTED_OPERATION,
                                  "this MPI library allows files to one thread of a process only")
               : 0;
}

/// The hints of a request, while it is opened.
class Hints {
 public:
    explicit Hints(const SondeMpiFileRequest& request) {
        if (request.hints > 0) {
            MPI_Info_create(&info_);
        }
        for (std::size_t i = 0; i < request.hints; ++i) {
            MPI_Info_set(info_, request.hint_names[i], request.hint_values[i]);
        }
    }
    Hints(const Hints&) = delete;
    Hints& operator=(const Hints&) = delete;
    ~Hints() {
        if (info_ != MPI_INFO_NULL) {
            MPI_Info_free(&info_);
        }
    }
    MPI_Info info() const { return info_; }

 private:
    MPI_Info info_ = MPI_INFO_NULL;
};

MPI_Comm get_communicator(const SondeMpiFileRequest& request) {
    return request.shared != 0 ? member_group() : MPI_COMM_SELF;
}

int to_open_mode(const SondeMpiFileRequest& request) {
    int mode = request.write != 0 ? (request.read != 0 ? MPI_MODE_RDWR : MPI_MODE_WRONLY) : MPI_MODE_RDONLY;
    mode |= request.create != 0 ? MPI_MODE_CREATE : 0;
    mode |= request.exclusive != 0 ? MPI_MODE_EXCL : 0;
    return mode;
}

// Uses a separate handle: in Open MPI 4.1, collective writes on a handle that preallocated may crash or hang. The
// handle needs read permission, because ROMIO allocates space by writing back the bytes that it read.
int preallocate(MPI_Comm group, const std::string& path, const SondeMpiFileRequest& request) {
    MPI_File file = MPI_FILE_NULL;
    if (const int code = MPI_File_open(group, path.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &file); code != MPI_SUCCESS) {
        return code;
    }
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    const int code = MPI_File_preallocate(file, static_cast<MPI_Offset>(request.preallocate));
    const int closed = MPI_File_close(&file);
    return code != MPI_SUCCESS ? code : closed;
}

// Called after the open. All of these calls are collective over the ranks that opened the file.
int prepare_file(SondeMpiFile& file, MPI_Comm group, const SondeMpiFileRequest& request) {
    int code = MPI_SUCCESS;
    if (request.truncate != 0) {
        code = MPI_File_set_size(file.handle, 0);
    }
    if (code == MPI_SUCCESS && request.size > 0) {
        code = MPI_File_set_size(file.handle, static_cast<MPI_Offset>(request.size));
    }
    if (code == MPI_SUCCESS && request.preallocate > 0) {
        code = preallocate(group, file.path, request);
    }
    if (code == MPI_SUCCESS && request.view != 0) {
        code = set_view(file, request);
    }
    return code;
}

void release_file(SondeMpiFile& file) {
    if (file.handle != MPI_FILE_NULL) {
        MPI_File_close(&file.handle);
    }
    if (file.view != MPI_DATATYPE_NULL) {
        MPI_Type_free(&file.view);
    }
}

/// Returns the bytes of a finished transfer, or -errno.
std::int64_t finish_transfer(int code, const MPI_Status& status, MPI_Datatype& type, const SondeMpiFile& file,
                             const char* verb) {
    MPI_Count bytes = 0;
    if (code == MPI_SUCCESS) {
        code = MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    }
    if (type != MPI_BYTE) {
        MPI_Type_free(&type);
    }
    return code == MPI_SUCCESS ? static_cast<std::int64_t>(bytes)
                               : report_mpi_error(code, std::string(verb) + file.path);
}

}  // namespace

int file_open(const SondeMpiFileRequest* request, SondeMpiFile** result) {
    if (const int error = check_thread(); error != 0) {
        return error;
    }
    auto file = std::make_unique<SondeMpiFile>();
    file->collective = request->collective != 0;
    // Open MPI 4.1 cannot open a name without a directory.
    file->path = std::strchr(request->path, '/') != nullptr ? request->path : std::string("./") + request->path;
    const Hints hints(*request);
    MPI_Comm group = get_communicator(*request);
    int code = MPI_File_open(group, file->path.c_str(), to_open_mode(*request), hints.info(), &file->handle);
    if (code == MPI_SUCCESS) {
        MPI_File_set_errhandler(file->handle, MPI_ERRORS_RETURN);
        code = prepare_file(*file, group, *request);
    }
    if (const int error = report_mpi_error(code, "opening " + file->path); error != 0) {
        // Closing is collective, and failures after the open are too: all ranks close the file, or none has it open.
        release_file(*file);
        return error;
    }
    *result = file.release();
    return 0;
}

std::int64_t file_write(SondeMpiFile* file, const void* data, std::size_t bytes, std::uint64_t offset) {
    MPI_Datatype type = MPI_BYTE;
    MPI_Status status;
    int count = 0;
    int code = make_transfer_type(bytes, count, type);
    if (code == MPI_SUCCESS) {
        const auto position = static_cast<MPI_Offset>(offset);
        code = file->collective ? MPI_File_write_at_all(file->handle, position, data, count, type, &status)
                                : MPI_File_write_at(file->handle, position, data, count, type, &status);
    }
    return finish_transfer(code, status, type, *file, "writing ");
}

std::int64_t file_read(SondeMpiFile* file, void* data, std::size_t bytes, std::uint64_t offset) {
    MPI_Datatype type = MPI_BYTE;
    MPI_Status status;
    int count = 0;
    int code = make_transfer_type(bytes, count, type);
    if (code == MPI_SUCCESS) {
        const auto position = static_cast<MPI_Offset>(offset);
        code = file->collective ? MPI_File_read_at_all(file->handle, position, data, count, type, &status)
                                : MPI_File_read_at(file->handle, position, data, count, type, &status);
    }
    return finish_transfer(code, status, type, *file, "reading ");
}

int file_sync(SondeMpiFile* file) {
    return report_mpi_error(MPI_File_sync(file->handle), "syncing " + file->path);
}

int file_close(SondeMpiFile* file) {
    const std::unique_ptr<SondeMpiFile> owner(file);
    const int error = report_mpi_error(MPI_File_close(&file->handle), "closing " + file->path);
    release_file(*file);
    return error;
}

int set_access_list(void* function, std::int64_t list, const SondeMpiFileRequest* request, int* result) {
    if (const int error = check_thread(); error != 0) {
        return error;
    }
    const Hints hints(*request);
    const auto set = reinterpret_cast<int (*)(std::int64_t, MPI_Comm, MPI_Info)>(function);
    *result = set(list, get_communicator(*request), hints.info());
    return 0;
}

int open_dataset(void* function, int mode, int* id, const SondeMpiFileRequest* request, int* result) {
    if (const int error = check_thread(); error != 0) {
        return error;
    }
    const Hints hints(*request);
    const auto call = reinterpret_cast<int (*)(MPI_Comm, const char*, int, MPI_Info, int*)>(function);
    *result = call(get_communicator(*request), request->path, mode, hints.info(), id);
    return 0;
}

const void* implementation() {
    return reinterpret_cast<const void*>(&MPI_Comm_dup);
}

}  // namespace sonde::ranks::mpi
