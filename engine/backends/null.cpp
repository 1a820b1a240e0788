// SPDX-License-Identifier: Apache-2.0
// Moves nothing and says it did: what is left is the engine's own cost. Also the template for a new backend: copy it,
// give it a name, and add its line to list.cpp (tools/new-backend does both).
#include "backends/backend.hpp"

namespace sonde::backends {
namespace {

class NullNameOperations final : public NameOperations {
 public:
    Directory open_directory(Directory /*parent*/, const char* /*name*/) noexcept override { return 0; }
    void close_directory(Directory /*directory*/) noexcept override {}
    int make_file(Directory /*parent*/, const char* /*name*/, const NewFileOptions& /*options*/) noexcept override {
        return 0;
    }
    int make_directory(Directory /*parent*/, const char* /*name*/) noexcept override { return 0; }
    int stat_entry(Directory /*parent*/, const char* /*name*/, const StatOptions& /*options*/) noexcept override {
        return 0;
    }
    int read_attributes(Directory /*parent*/, const char* /*name*/, const StatOptions& /*options*/,
                        EntryAttributes& attributes) noexcept override {
        attributes.kind = EntryKind::file;
        return 0;
    }
    int open_close(Directory /*parent*/, const char* /*name*/) noexcept override { return 0; }
    std::int64_t read_file(Directory /*parent*/, const char* /*name*/, std::span<std::byte> into) noexcept override {
        return static_cast<std::int64_t>(into.size());
    }
    int rename(Directory /*parent*/, const char* /*name*/, const char* /*to*/) noexcept override { return 0; }
    int remove_file(Directory /*parent*/, const char* /*name*/) noexcept override { return 0; }
    int remove_directory(Directory /*parent*/, const char* /*name*/) noexcept override { return 0; }
    std::int64_t read_entries(Directory /*directory*/, std::span<std::byte> /*buffer*/) noexcept override { return 0; }
    bool next_entry(std::span<const std::byte> /*listed*/, std::size_t& /*place*/,
                    DirectoryEntry& /*entry*/) const noexcept override {
        return false;
    }
    int sync_file_system(Directory /*directory*/) noexcept override { return 0; }
};

// One channel belongs to one task and is used by one thread: no locks. Between open() and close() nothing may
// allocate, print or throw: errors travel as negative errno values.
class NullChannel final : public Channel {
 public:
    // `setup` has all that is known beforehand: the plan's io settings, the longest operation, the buffer areas.
    explicit NullChannel(const ChannelSetup& /*setup*/) {}

    // Make `request.path` ready under the index `file`. The flags in the request are binding: do not create a file that
    // was not asked for, do not truncate one.
    int open(std::uint16_t /*file*/, const OpenRequest& /*request*/) override { return 0; }

    // After this returns 0, what was written survives a crash.
    int fsync(std::uint16_t /*file*/) override { return 0; }
    int close(std::uint16_t /*file*/) override { return 0; }

    // Only for storage without POSIX names: the defaults call stat(2) and unlink(2).
    int stat(Directory /*root*/, const char* /*path*/) noexcept override { return 0; }
    int remove(Directory /*root*/, const char* /*path*/) noexcept override { return 0; }

    // Operations on the names of a tree; leave it out, and `supports_trees` out of the traits below, when the storage
    // has none.
    NameOperations* name_operations() override { return &name_operations_; }

    // The hot path. Return what really moved: fewer bytes than asked is allowed (the engine continues), 0 means end of
    // file, and an error is -errno.
    std::int64_t transfer(const IoRequest& operation) noexcept override { return operation.length; }

 private:
    NullNameOperations name_operations_;
};

}  // namespace

extern const Backend null_backend;
const Backend null_backend{
    .name = "null",
    .summary = "moves nothing: the cost of the engine itself",
    .traits = {.stores_data = false,
               .needs_files = false,
               .supports_direct = true,
               .supports_sync = true,
               .supports_trees = true},
    // Ask the machine, not the build: kernel features, permissions, services. Say what would help.
    .check_availability = [](const std::string&) { return Availability{}; },
    .make_channel = [](const ChannelSetup& setup) -> std::unique_ptr<Channel> {
        return std::make_unique<NullChannel>(setup);
    },
};

}  // namespace sonde::backends
