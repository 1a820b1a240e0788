// SPDX-License-Identifier: Apache-2.0
// Backend io_uring: up to queue_depth operations in flight, handed to the kernel in batches. Knows liburing and which
// of its savings this kernel has.
#include "backends/backend.hpp"
#include "backends/io_uring_errors.hpp"
#include "backends/open_file.hpp"

#include <liburing.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace sonde::backends {

namespace {

// Older headers lack the newer flags; the kernel refuses what it does not know, and the next set is tried.
constexpr unsigned ring_disabled = 1U << 6U;             // IORING_SETUP_R_DISABLED
constexpr unsigned ring_submit_all = 1U << 7U;           // IORING_SETUP_SUBMIT_ALL
constexpr unsigned ring_cooperative_taskrun = 1U << 8U;  // IORING_SETUP_COOP_TASKRUN
constexpr unsigned ring_single_issuer = 1U << 12U;       // IORING_SETUP_SINGLE_ISSUER
constexpr unsigned ring_deferred_taskrun = 1U << 13U;    // IORING_SETUP_DEFER_TASKRUN

/// From the best to what every kernel has. Deferred: completions are worked off when this thread asks for them, not by
/// interrupting it.
constexpr std::array setup_flag_sets{ring_disabled | ring_submit_all | ring_single_issuer | ring_deferred_taskrun,
                                     ring_disabled | ring_submit_all | ring_single_issuer | ring_cooperative_taskrun,
                                     ring_disabled | ring_submit_all | ring_cooperative_taskrun, ring_disabled, 0U};

constexpr std::uint64_t fsync_tag_bit = 1ULL << 32U;  ///< marks the tag of an fsync, next to the slot
constexpr unsigned char write_then_fsync = 2;         ///< state of a slot whose write is followed by an fsync

/// The flags that a plan asks for. Kernels allow SQPOLL with some of the sets above only; the others are skipped.
unsigned list_requested_flags(const plan::Io& io) {
    return (io.sqpoll ? IORING_SETUP_SQPOLL : 0U) | (io.iopoll ? IORING_SETUP_IOPOLL : 0U);
}

/// A ring of at least `entries` with the flags `requested`, or -errno of the last attempt.
int make_ring(io_uring& ring, unsigned entries, unsigned requested, unsigned& flags) {
    int failed = -EINVAL;
    for (const unsigned set : setup_flag_sets) {
        const unsigned attempt = set | requested;
        failed = io_uring_queue_init(entries, &ring, attempt);
        if (failed == 0) {
            flags = attempt;
            return 0;
        }
        if (failed != -EINVAL) {
            break;
        }
    }
    return failed;
}

class UringChannel final : public Channel {
 public:
    explicit UringChannel(const ChannelSetup& setup);
    ~UringChannel() override;

    int open(std::uint16_t file, const OpenRequest& request) override;
    int fsync(std::uint16_t file) override { return sync_file(descriptors_.at(file)); }
    int close(std::uint16_t file) override;
    std::int64_t transfer(const IoRequest& operation) noexcept override;
    bool submit(const IoRequest& operation) noexcept override;
    std::size_t reap(std::span<Completion> done) noexcept override;
    std::vector<std::string> missing_features() const override { return missing_features_; }
    const char* last_error_text() const noexcept override { return explanation_; }

 private:
    void register_buffers(std::span<const std::span<std::byte>> areas);
    void register_files();
    int register_ring_in_thread();
    void unregister_ring_from_thread() noexcept;
    void prepare_entry(const IoRequest& operation, io_uring_sqe* entry) noexcept;
    void prepare_sync(const IoRequest& operation) noexcept;
    bool process_completion(const io_uring_cqe& entry, Completion& completion) noexcept;
    int submit_and_wait() noexcept;
    std::size_t collect_completions(std::span<Completion> done) noexcept;
    std::size_t fail_operations_in_flight(std::span<Completion> done) noexcept;

    const plan::Io& io_settings_;
    io_uring ring_{};
    unsigned flags_ = 0;
    bool fixed_buffers_ = false, fixed_files_ = false;
    bool is_ring_ready_ = false;    ///< the ring takes operations (it is made disabled)
    unsigned open_file_count_ = 0;  ///< files
    unsigned depth_ = 1, in_flight_ = 0;
    int ring_error_ = 0;  ///< errno that made the ring unusable: all that is in flight fails with it
    std::vector<int> descriptors_;
    bool sync_each_ = false;                  ///< an fsync is linked to every write; both make up the operation
    std::vector<unsigned char> slot_states_;  ///< by slot: 1 = in flight
    std::vector<std::int32_t> written_;       ///< by slot: result of a write whose fsync is not done
    std::vector<std::string> missing_features_;
    const char* explanation_ = "";
};

UringChannel::UringChannel(const ChannelSetup& setup)
    : io_settings_(*setup.io),
      depth_(static_cast<unsigned>(std::max(1, setup.io->queue_depth))),
      descriptors_(setup.file_count, -1),
      sync_each_(setup.io->fsync == plan::Fsync::per_op),
      slot_states_(depth_, 0),
      written_(sync_each_ ? depth_ : 0, 0) {
    // The kernel's thread releases the entries of a batch together, when operations of that batch may be complete.
    const unsigned entries = depth_ * (sync_each_ ? 2 : 1) * (io_settings_.sqpoll ? 2 : 1);
    const int failed = make_ring(ring_, entries, list_requested_flags(io_settings_), flags_);
    if (failed != 0) {
        throw std::runtime_error(explain_uring_setup_error(-failed));
    }
    if (io_settings_.registered) {
        register_buffers(setup.buffer_areas);
        register_files();
    }
}

UringChannel::~UringChannel() {
    for (std::size_t i = 0; i < descriptors_.size(); ++i) {
        UringChannel::close(static_cast<std::uint16_t>(i));
    }
    io_uring_queue_exit(&ring_);
}

void UringChannel::register_buffers(std::span<const std::span<std::byte>> areas) {
    if (areas.empty()) {
        return;
    }
    std::vector<iovec> vectors;
    vectors.reserve(areas.size());
    for (const std::span<std::byte> area : areas) {
        vectors.push_back({area.data(), area.size()});
    }
    const int failed = io_uring_register_buffers(&ring_, vectors.data(), static_cast<unsigned>(vectors.size()));
    fixed_buffers_ = failed == 0;
    if (failed == -ENOMEM) {
        missing_features_.emplace_back(
            "io_uring works without registered buffers, because the limit on locked memory is too low for "
            "them: raise it with `ulimit -l`.");
    } else if (failed != 0) {
        missing_features_.push_back(
            "io_uring works without registered buffers: " + std::string(std::strerror(-failed)) + ".");
    }
}

void UringChannel::register_files() {
    // All empty; open() fills its place.
    const int failed = io_uring_register_files(&ring_, descriptors_.data(), static_cast<unsigned>(descriptors_.size()));
    fixed_files_ = failed == 0;
    if (failed != 0) {
        missing_features_.push_back("io_uring works without registered files: " + std::string(std::strerror(-failed)) +
                                    ".");
    }
}

/// The ring belongs to the thread that enables it, so that waits until the task's own thread opens its first file.
int UringChannel::register_ring_in_thread() {
    if (!is_ring_ready_ && (flags_ & ring_disabled) != 0) {
        // Some builds of liburing forget to export their function for this.
        constexpr int enable = 12;  // IORING_REGISTER_ENABLE_RINGS
        if (::syscall(SYS_io_uring_register, ring_.ring_fd, enable, nullptr, 0) != 0) {
            return -errno;
        }
    }
    is_ring_ready_ = true;
    // Saves a look-up of the ring's descriptor in every call; a kernel without it loses nothing else.
    io_uring_register_ring_fd(&ring_);
    return 0;
}

void UringChannel::unregister_ring_from_thread() noexcept {
    io_uring_unregister_ring_fd(&ring_);
}

int UringChannel::open(std::uint16_t file, const OpenRequest& request) {
    if (open_file_count_ == 0) {
        const int failed = register_ring_in_thread();
        if (failed != 0) {
            return failed;
        }
    }
    const int descriptor = open_file(io_settings_, request);
    if (descriptor < 0) {
        if (open_file_count_ == 0) {
            unregister_ring_from_thread();
        }
        return descriptor;
    }
    if (fixed_files_) {
        const int updated = io_uring_register_files_update(&ring_, file, &descriptor, 1);
        if (updated != 1) {
            ::close(descriptor);
            return updated < 0 ? updated : -EBADF;
        }
    }
    descriptors_.at(file) = descriptor;
    ++open_file_count_;
    return 0;
}

int UringChannel::close(std::uint16_t file) {
    int& descriptor = descriptors_.at(file);
    if (descriptor < 0) {
        return 0;
    }
    if (fixed_files_) {
        // The ring's own reference would keep the file open, and delay what its file system does on the last close.
        const int none = -1;
        io_uring_register_files_update(&ring_, file, &none, 1);
    }
    const int result = close_file(descriptor);
    descriptor = -1;
    if (--open_file_count_ == 0) {
        unregister_ring_from_thread();
    }
    return result;
}

void UringChannel::prepare_entry(const IoRequest& operation, io_uring_sqe* entry) noexcept {
    const int file = fixed_files_ ? operation.file_index : descriptors_[operation.file_index];
    const auto slot = static_cast<int>(operation.slot);
    if (fixed_buffers_ && operation.is_write) {
        io_uring_prep_write_fixed(entry, file, operation.buffer, operation.length, operation.offset, slot);
    } else if (fixed_buffers_) {
        io_uring_prep_read_fixed(entry, file, operation.buffer, operation.length, operation.offset, slot);
    } else if (operation.is_write) {
        io_uring_prep_write(entry, file, operation.buffer, operation.length, operation.offset);
    } else {
        io_uring_prep_read(entry, file, operation.buffer, operation.length, operation.offset);
    }
    if (fixed_files_) {
        entry->flags |= IOSQE_FIXED_FILE;
    }
    io_uring_sqe_set_data64(entry, operation.slot);
}

/// The kernel starts the linked fsync when the write has succeeded in full, and cancels it otherwise.
void UringChannel::prepare_sync(const IoRequest& operation) noexcept {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    io_uring_prep_fsync(entry, fixed_files_ ? operation.file_index : descriptors_[operation.file_index], 0);
    if (fixed_files_) {
        entry->flags |= IOSQE_FIXED_FILE;
    }
    io_uring_sqe_set_data64(entry, operation.slot | fsync_tag_bit);
}

bool UringChannel::submit(const IoRequest& operation) noexcept {
    if (in_flight_ == depth_) {
        return false;
    }
    // There is room for every operation that may be in flight.
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    prepare_entry(operation, entry);
    slot_states_[operation.slot] = 1;
    ++in_flight_;
    if (sync_each_ && operation.is_write) [[unlikely]] {
        entry->flags |= IOSQE_IO_LINK;
        slot_states_[operation.slot] = write_then_fsync;
        prepare_sync(operation);
    }
    if (io_settings_.direct) {
        // The device is what takes time, so it hears of the operation at once; in batches it had a tenth less to do
        // (the kernel plugs the block queue for more than two). When the kernel takes none now, reap() tries again.
        io_uring_submit(&ring_);
    }
    // Otherwise reap() hands over all that was queued since with one system call, which is most of the cost of a cached
    // read.
    return true;
}

/// True when this entry ends an operation.
bool UringChannel::process_completion(const io_uring_cqe& entry, Completion& completion) noexcept {
    const std::uint64_t tag = entry.user_data;
    const auto slot = static_cast<std::uint32_t>(tag & ~fsync_tag_bit);
    completion = {slot, entry.res};
    if (slot_states_[slot] == write_then_fsync) [[unlikely]] {
        if ((tag & fsync_tag_bit) == 0) {
            written_[slot] = entry.res;
            return false;
        }
        const bool synced = entry.res == 0 || entry.res == -ECANCELED;
        completion.result = synced ? written_[slot] : entry.res;
    }
    if (completion.result == -EOPNOTSUPP && io_settings_.iopoll) [[unlikely]] {
        explanation_ = no_poll_queues;
    }
    slot_states_[slot] = 0;
    --in_flight_;
    return true;
}

std::size_t UringChannel::collect_completions(std::span<Completion> done) noexcept {
    std::size_t count = 0;
    unsigned used = 0;
    unsigned head = 0;
    io_uring_cqe* entry = nullptr;
    io_uring_for_each_cqe(&ring_, head, entry) {
        if (count == done.size()) {
            break;
        }
        ++used;
        count += process_completion(*entry, done[count]) ? 1 : 0;
    }
    io_uring_cq_advance(&ring_, used);
    return count;
}

std::size_t UringChannel::fail_operations_in_flight(std::span<Completion> done) noexcept {
    std::size_t count = 0;
    for (std::uint32_t slot = 0; slot < depth_ && count < done.size(); ++slot) {
        if (slot_states_[slot] != 0) {
            slot_states_[slot] = 0;
            done[count++] = {slot, -ring_error_};
        }
    }
    in_flight_ -= static_cast<unsigned>(count);
    return count;
}

/// Hands over what is queued and waits for a completion, if there is none. Returns a negative errno on failure.
int UringChannel::submit_and_wait() noexcept {
    if (!io_settings_.sqpoll) {
        // Also when completions are there already: what is queued must not wait for them to be used up.
        return io_uring_sq_ready(&ring_) > 0 || io_uring_cq_ready(&ring_) == 0 ? io_uring_submit_and_wait(&ring_, 1)
                                                                               : 0;
    }
    // The kernel's thread needs a system call only while it sleeps. Looks for completions before it waits, as fio does.
    constexpr int looks = 100'000;  // about 100 us
    int submitted = io_uring_submit(&ring_);
    for (int look = 0; look < looks && submitted >= 0 && io_uring_cq_ready(&ring_) == 0; ++look) {
    }
    if (submitted >= 0 && io_uring_cq_ready(&ring_) == 0) {
        submitted = io_uring_submit_and_wait(&ring_, 1);
    }
    return submitted;
}

std::size_t UringChannel::reap(std::span<Completion> done) noexcept {
    if (in_flight_ == 0 || done.empty()) {
        return 0;
    }
    while (ring_error_ == 0) {
        const int submitted = submit_and_wait();
        const bool passing = submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY;
        if (submitted < 0 && !passing) {
            ring_error_ = -submitted;
            break;
        }
        const std::size_t count = collect_completions(done);
        if (count > 0) {
            return count;
        }
    }
    return fail_operations_in_flight(done);
}

std::int64_t UringChannel::transfer(const IoRequest& operation) noexcept {
    if (!submit(operation)) {
        return -EBUSY;
    }
    Completion completion;
    return reap({&completion, 1}) == 1 ? completion.result : -EIO;
}

Availability check_availability(const std::string& /*directory*/) {
    io_uring ring{};
    unsigned flags = 0;
    const int failed = make_ring(ring, 2, 0, flags);
    if (failed != 0) {
        return {false, explain_uring_setup_error(-failed)};
    }
    io_uring_queue_exit(&ring);
    return {};
}

std::unique_ptr<Channel> make_channel(const ChannelSetup& setup) {
    return std::make_unique<UringChannel>(setup);
}

}  // namespace

extern const Backend io_uring_backend;
const Backend io_uring_backend{
    .name = "io_uring",
    .summary = "asynchronous I/O with a queue, registered buffers and files",
    .traits = {.supports_queue = true, .supports_direct = true, .supports_sync = true, .supports_polling = true},
    .check_availability = check_availability,
    .make_channel = make_channel,
};

}  // namespace sonde::backends
