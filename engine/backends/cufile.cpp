// SPDX-License-Identifier: Apache-2.0
// Backend cufile: bytes move between storage and the memory of a GPU by NVIDIA's cuFile, without a buffer of the host
// where storage and driver allow it (GPUDirect Storage), else through buffers of the library.
#include "backends/cufile_library.hpp"

#include "backends/gpu_memory.hpp"
#include "backends/open_file.hpp"

#include <cerrno>
#include <stdexcept>
#include <utility>

namespace sonde::backends {
namespace {

constexpr int cufile_already_open = 5026;  ///< CU_FILE_DRIVER_ALREADY_OPEN

struct GpuFile {
    int descriptor = -1;
    CuFileHandle handle = nullptr;
};

void* as_pointer(CudaAddress address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));  // NOLINT(performance-no-int-to-ptr): the ABI
}

class CuFileChannel final : public Channel {
 public:
    explicit CuFileChannel(const ChannelSetup& setup)
        : cufile_(load_cufile()),
          io_settings_(*setup.io),
          copies_(setup.gpu_copies),
          memory_(setup),
          files_(setup.file_count) {
        const CuFileError opened = cufile_.DriverOpen();
        if (opened.cufile_status != 0 && opened.cufile_status != cufile_already_open) {
            throw std::runtime_error("cuFile cannot be started: " + describe_cufile_error(opened.cufile_status));
        }
        for (std::uint32_t slot = 0; slot < memory_.areas().size(); ++slot) {
            void* mirror = as_pointer(memory_.device_buffer(slot));
            if (cufile_.BufRegister(mirror, memory_.areas()[slot].size(), 0).cufile_status == 0) {
                registered_.push_back(mirror);
            }
        }
    }
    ~CuFileChannel() override {
        for (GpuFile& file : files_) {
            release(file);
        }
        for (const void* mirror : registered_) {
            cufile_.BufDeregister(mirror);
        }
    }

    int open(std::uint16_t index, const OpenRequest& request) override {
        if (!memory_.enter_thread()) {
            return -EIO;
        }
        GpuFile& file = files_[index];
        file.descriptor = open_file(io_settings_, request);
        if (file.descriptor < 0) {
            return std::exchange(file.descriptor, -1);
        }
        CuFileDescription description;
        description.handle = nullptr;
        description.descriptor = file.descriptor;
        if (const CuFileError error = cufile_.HandleRegister(&file.handle, &description); error.cufile_status != 0) {
            file.handle = nullptr;
            explanation_ = describe_cufile_error(error.cufile_status);
            release(file);
            return -EIO;
        }
        return 0;
    }
    int fsync(std::uint16_t index) override { return sync_file(files_[index].descriptor); }
    int close(std::uint16_t index) override { return release(files_[index]); }
    void begin_timed_part() noexcept override {
        is_broken_ = !memory_.enter_thread() || (!copies_.before_writes && !memory_.upload_areas());
    }

    std::int64_t transfer(const IoRequest& operation) noexcept override {
        const CuFileHandle handle = files_[operation.file_index].handle;
        void* mirror = as_pointer(memory_.device_buffer(operation.slot));
        const auto offset = static_cast<off_t>(operation.offset);
        const auto into = static_cast<off_t>(operation.buffer - memory_.areas()[operation.slot].data());
        if (operation.is_write) {
            const bool is_ready =
                !is_broken_ &&
                (!copies_.before_writes ||
                 (memory_.begin_upload(operation.slot, operation.buffer, operation.length) && memory_.wait()));
            return is_ready ? to_result(cufile_.Write(handle, mirror, operation.length, offset, into)) : -EIO;
        }
        const std::int64_t moved = to_result(cufile_.Read(handle, mirror, operation.length, offset, into));
        const bool is_returned =
            moved <= 0 || !copies_.after_reads ||
            (memory_.begin_download(operation.slot, operation.buffer, static_cast<std::uint64_t>(moved)) &&
             memory_.wait());
        return is_returned ? moved : -EIO;
    }

    const char* last_error_text() const noexcept override {
        return *memory_.explanation() != '\0' ? memory_.explanation() : explanation_.c_str();
    }

 private:
    /// -1 with errno for an error of the system, the negative number of an error of cuFile otherwise.
    std::int64_t to_result(ssize_t result) noexcept {
        if (result >= 0) [[likely]] {
            return result;
        }
        if (result == -1) {
            return -errno;
        }
        explanation_ = describe_cufile_error(static_cast<int>(-result));
        return -EIO;
    }
    int release(GpuFile& file) {
        if (file.handle != nullptr) {
            cufile_.HandleDeregister(file.handle);
        }
        const int result = file.descriptor >= 0 ? close_file(file.descriptor) : 0;
        file = {};
        return result;
    }

    const CuFileFunctions& cufile_;
    const plan::Io& io_settings_;
    GpuCopies copies_;
    GpuMemory memory_;
    std::vector<GpuFile> files_;
    std::vector<const void*> registered_;
    std::string explanation_;
    bool is_broken_ = false;
};

Availability check_availability(const std::string& /*directory*/) {
    try {
        load_cufile();
    } catch (const std::exception& error) {
        return {.is_available = false, .reason = error.what()};
    }
    return find_gpus({});
}

}  // namespace

extern const Backend cufile_backend;
const Backend cufile_backend{
    .name = "cufile",
    .summary = "NVIDIA's cuFile, between storage and the memory of a GPU",
    .traits = {.stores_data = true,
               .needs_files = true,
               .supports_direct = true,
               .supports_sync = true,
               .transfers_gpu_memory = true},
    .check_availability = check_availability,
    .make_channel = [](const ChannelSetup& setup) -> std::unique_ptr<Channel> {
        return std::make_unique<CuFileChannel>(setup);
    },
};

}  // namespace sonde::backends
