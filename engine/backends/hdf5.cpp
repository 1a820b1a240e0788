// SPDX-License-Identifier: Apache-2.0
// HDF5 through MPI-IO, in the files of IOR: a dataset of 8-byte integers for each segment, Dataset-0000.0000 and so on,
// that holds the blocks of all tasks of the file. Data transfers are independent or collective; opening, flushing and
// closing a common file takes all its tasks in any case. All datasets are made in open(), because making one takes all
// tasks too, while a task may stop at any operation.
#include "backends/backend.hpp"
#include "backends/hdf5_library.hpp"
#include "backends/member_votes.hpp"
#include "backends/mpi_hints.hpp"
#include "ranks/mpi_loader.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sonde::backends {
namespace {

constexpr std::uint64_t element = 8;  // bytes

/// The errno that a message of HDF5 or MPI names.
int find_errno(const std::string& message) {
    const std::pair<const char*, int> names[] = {
        {"NO_SUCH_FILE", ENOENT}, {"No such file", ENOENT}, {"NO_SPACE", ENOSPC},
        {"No space", ENOSPC},     {"ERR_ACCESS", EACCES},   {"Permission denied", EACCES},
        {"ERR_QUOTA", EDQUOT},    {"READ_ONLY", EROFS},     {"FILE_EXISTS", EEXIST},
    };
    for (const auto& [name, code] : names) {
        if (message.find(name) != std::string::npos) {
            return code;
        }
    }
    return EIO;
}

class Hdf5Channel final : public Channel {
 public:
    explicit Hdf5Channel(const ChannelSetup& setup)
        : mpi_(*static_cast<const SondeMpiModule*>(setup.mpi)),
          hdf_(load_hdf5()),
          io_settings_(*setup.io),
          votes_(mpi_, setup.shared_file),
          decides_(!setup.shared_file || setup.task == 0),
          memory_elements_(setup.max_length / element),
          files_(setup.file_count),
          hints_(io_settings_) {
        const HdfSize elements = memory_elements_;
        memory_space_ = hdf_.call.Screate_simple(1, &elements, nullptr);
        selected_elements_ = memory_elements_;
        transfer_list_ = hdf_.call.Pcreate(hdf_.dataset_transfer);
        if (io_settings_.collective) {
            hdf_.call.Pset_dxpl_mpio(transfer_list_, hdf_collective);
        }
    }
    ~Hdf5Channel() override {
        // Closing a common file takes all tasks. One that is destroyed while open belongs to a run that ends badly.
        for (OpenHdf5File& file : files_) {
            if (file.id >= 0 && !votes_.is_common()) {
                close_objects(file);
            }
        }
        hdf_.call.Pclose(transfer_list_);
        hdf_.call.Sclose(memory_space_);
    }

    int open(std::uint16_t index, const OpenRequest& request) override;
    int fsync(std::uint16_t index) override;
    int close(std::uint16_t index) override;
    std::int64_t transfer(const IoRequest& operation) noexcept override;
    bool agree_on_stop(bool stop) noexcept override {
        return io_settings_.collective ? votes_.any_yes(stop) != 0 : stop;
    }
    const char* last_error_text() const noexcept override { return explanation_.c_str(); }

 private:
    struct OpenHdf5File {
        HdfId id = -1, data_space = -1;
        std::uint64_t dataset_bytes = 0;
        std::string path;
        std::vector<HdfId> datasets;
    };

    int fail() noexcept;
    int fail_transfer(const OpenHdf5File& file, const IoRequest& operation) noexcept;
    int fail(int code, std::string explanation) noexcept;
    HdfId make_access_list(const OpenRequest& request);
    int open_file(OpenHdf5File& file, const OpenRequest& request, bool must_create);
    int open_datasets(OpenHdf5File& file, std::uint64_t count, bool must_create);
    int check_dataset(const OpenHdf5File& file, HdfId dataset, const char* name);
    int close_objects(OpenHdf5File& file);
    bool select(const OpenHdf5File& file, HdfSize start, HdfSize count) noexcept;

    const SondeMpiModule& mpi_;
    const Hdf5Library& hdf_;
    const plan::Io& io_settings_;
    MemberVotes votes_;
    bool decides_;  ///< whether this task looks at the file for all that open it
    HdfId memory_space_ = -1, transfer_list_ = -1;
    HdfSize memory_elements_, selected_elements_ = 0;
    std::vector<OpenHdf5File> files_;
    MpiHints hints_;
    std::string explanation_;
};

int Hdf5Channel::fail() noexcept {
    std::string message = hdf_.describe_last_error();
    const int code = find_errno(message);
    return fail(code, "HDF5: " + (message.empty() ? "the call failed without a reason" : std::move(message)));
}

int Hdf5Channel::fail_transfer(const OpenHdf5File& file, const IoRequest& operation) noexcept {
    const int result = fail();
    return is_out_of_space(result, operation, file.path) ? fail(ENOSPC, explanation_ + ": the file system is full")
                                                         : result;
}

int Hdf5Channel::fail(int code, std::string explanation) noexcept {
    explanation_ = std::move(explanation);
    return -code;
}

HdfId Hdf5Channel::make_access_list(const OpenRequest& request) {
    const HdfId list = hdf_.call.Pcreate(hdf_.file_access);
    SondeMpiFileRequest group{};
    group.path = request.path.c_str();
    group.shared = static_cast<int>(votes_.is_common());
    hints_.add_to(group);
    int result = 0;
    if (mpi_.set_access_list(hdf_.call.Pset_fapl_mpio, list, &group, &result) != 0) {
        fail(EOPNOTSUPP, mpi_.last_error_message());
        hdf_.call.Pclose(list);
        return -1;
    }
    if (result >= 0 && io_settings_.alignment > 0) {
        result = hdf_.call.Pset_alignment(list, io_settings_.alignment, io_settings_.alignment);
    }
    if (result >= 0 && io_settings_.collective_metadata) {
        hdf_.call.Pset_all_coll_metadata_ops(list, true);
        result = hdf_.call.Pset_coll_metadata_write(list, true);
    }
    if (result < 0) {
        fail();
        hdf_.call.Pclose(list);
        return -1;
    }
    return list;
}

/// Sentences for what HDF5 says in the words of its inner parts.
std::string rephrase(const std::string& path, std::string explanation) {
    if (explanation.find("file signature") != std::string::npos) {
        return path + " is not an HDF5 file: write it first, or name the file that `-a HDF5` or backend \"hdf5\" made";
    }
    return explanation;
}

int Hdf5Channel::open_file(OpenHdf5File& file, const OpenRequest& request, bool must_create) {
    const HdfId list = make_access_list(request);
    if (list < 0) {
        return -EIO;
    }
    const unsigned make_flags = request.exclusive ? hdf_exclusive : hdf_truncate;
    file.id = must_create ? hdf_.call.Fcreate(request.path.c_str(), make_flags, hdf_default, list)
                          : hdf_.call.Fopen(request.path.c_str(), request.write ? hdf_read_write : hdf_read_only, list);
    int result = 0;
    if (file.id < 0) {
        result = fail();
        explanation_ = rephrase(request.path, explanation_);
    }
    hdf_.call.Pclose(list);
    return result;
}

int Hdf5Channel::open(std::uint16_t index, const OpenRequest& request) {
    OpenHdf5File& file = files_[index];
    explanation_.clear();
    file.dataset_bytes = request.blocks.stride;
    file.path = request.path;
    const int create_vote = votes_.any_yes(decides_ && must_create_file(request));
    if (create_vote < 0) {
        return create_vote;
    }
    int result = open_file(file, request, create_vote != 0);
    if (result == 0) {
        const HdfSize elements = file.dataset_bytes / element;
        file.data_space = hdf_.call.Screate_simple(1, &elements, nullptr);
        result = open_datasets(file, request.size / file.dataset_bytes, create_vote != 0);
    }
    // All tasks have the file open, or none.
    const int failed = votes_.any_yes(result < 0);
    if (failed != 0 && file.id >= 0) {
        close_objects(file);
    }
    if (failed != 0 && result == 0) {
        result = fail(EIO, "another task could not open the file");
    }
    return result;
}

int Hdf5Channel::open_datasets(OpenHdf5File& file, std::uint64_t count, bool must_create) {
    HdfId list = hdf_default;
    if (must_create && io_settings_.chunk > 0) {
        const HdfSize elements = io_settings_.chunk / element;
        list = hdf_.call.Pcreate(hdf_.dataset_create);
        hdf_.call.Pset_chunk(list, 1, &elements);
    }
    int result = 0;
    for (std::uint64_t number = 0; number < count && result == 0; ++number) {
        std::array<char, 48> name{};
        std::snprintf(name.data(), name.size(), "Dataset-0000.%04llu", static_cast<unsigned long long>(number));
        const HdfId dataset = must_create ? hdf_.call.Dcreate2(file.id, name.data(), hdf_.element_type, file.data_space,
                                                               hdf_default, list, hdf_default)
                                          : hdf_.call.Dopen2(file.id, name.data(), hdf_default);
        if (dataset < 0 && must_create) {
            result = fail();
        } else if (dataset < 0) {
            result = fail(ENODATA, "the file has no dataset " + std::string(name.data()) +
                                       ": it was written with fewer segments, or by another program");
        } else {
            file.datasets.push_back(dataset);
            result = must_create ? 0 : check_dataset(file, dataset, name.data());
        }
    }
    if (list != hdf_default) {
        hdf_.call.Pclose(list);
    }
    return result;
}

int Hdf5Channel::check_dataset(const OpenHdf5File& file, HdfId dataset, const char* name) {
    const HdfId type = hdf_.call.Dget_type(dataset);
    const std::uint64_t element_bytes = hdf_.call.Tget_size(type);
    hdf_.call.Tclose(type);
    const HdfId space = hdf_.call.Dget_space(dataset);
    const auto elements = static_cast<std::uint64_t>(hdf_.call.Sget_simple_extent_npoints(space));
    hdf_.call.Sclose(space);
    if (element_bytes != element || elements * element != file.dataset_bytes) {
        return fail(EINVAL, std::string(name) + " holds " + std::to_string(elements) + " elements of " +
                                std::to_string(element_bytes) + " B, but block x tasks of this phase is " +
                                std::to_string(file.dataset_bytes) +
                                " B: read with the block and the number of tasks that wrote it");
    }
    return 0;
}

/// 0 or -errno. The file counts as closed in any case.
int Hdf5Channel::close_objects(OpenHdf5File& file) {
    int result = 0;
    for (const HdfId dataset : file.datasets) {
        if (hdf_.call.Dclose(dataset) < 0 && result == 0) {
            result = fail();
        }
    }
    hdf_.call.Sclose(file.data_space);
    if (hdf_.call.Fclose(file.id) < 0) {
        // HDF5 keeps the file and closes it again when MPI ends, where it has crashed after a full file system.
        ranks::forbid_stop();
        result = result == 0 ? fail() : result;
    }
    file = {};
    return result;
}

int Hdf5Channel::fsync(std::uint16_t index) {
    if (const int result = votes_.begin_sync(); result != 0) {
        return result;
    }
    return hdf_.call.Fflush(files_[index].id, hdf_scope_local) < 0 ? fail() : 0;
}

int Hdf5Channel::close(std::uint16_t index) {
    if (const int result = votes_.begin_close(); result != 0) {
        return result;
    }
    return close_objects(files_[index]);
}

bool Hdf5Channel::select(const OpenHdf5File& file, HdfSize start, HdfSize count) noexcept {
    constexpr HdfSize zero = 0, single = 1;
    if (count != selected_elements_) {
        if (count > memory_elements_ ||
            hdf_.call.Sselect_hyperslab(memory_space_, hdf_select_set, &zero, nullptr, &single, &count) < 0) {
            return false;
        }
        selected_elements_ = count;
    }
    return hdf_.call.Sselect_hyperslab(file.data_space, hdf_select_set, &start, nullptr, &single, &count) >= 0;
}

std::int64_t Hdf5Channel::transfer(const IoRequest& operation) noexcept {
    const OpenHdf5File& file = files_[operation.file_index];
    const std::uint64_t number = operation.offset / file.dataset_bytes;
    if (number >= file.datasets.size()) {
        return operation.is_write ? -EINVAL : 0;
    }
    if (!select(file, operation.offset % file.dataset_bytes / element, operation.length / element)) {
        return fail();
    }
    const HdfId dataset = file.datasets[number];
    const int result = operation.is_write ? hdf_.call.Dwrite(dataset, hdf_.element_type, memory_space_, file.data_space,
                                                             transfer_list_, operation.buffer)
                                          : hdf_.call.Dread(dataset, hdf_.element_type, memory_space_, file.data_space,
                                                            transfer_list_, operation.buffer);
    return result < 0 ? fail_transfer(file, operation) : static_cast<std::int64_t>(operation.length);
}

Availability check_availability(const std::string& /*directory*/) {
    const std::string why = explain_missing_hdf5();
    return {why.empty(), why};
}

std::unique_ptr<Channel> make_channel(const ChannelSetup& setup) {
    if (setup.mpi == nullptr) {
        throw std::runtime_error(
            "the backend hdf5 needs MPI, and this run was formed without it: start it by mpiexec or srun with --mpi");
    }
    return std::make_unique<Hdf5Channel>(setup);
}

}  // namespace

extern const Backend hdf5_backend;
const Backend hdf5_backend{
    .name = "hdf5",
    .summary = "HDF5 datasets as IOR writes them, through MPI-IO, independent or collective",
    .traits = {.supports_collective = true,
               .needs_mpi = true,
               .dataset_element_bytes = element,
               .supports_chunks = true},
    .check_availability = check_availability,
    .make_channel = make_channel,
};

}  // namespace sonde::backends
