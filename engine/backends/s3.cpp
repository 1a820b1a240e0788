// SPDX-License-Identifier: Apache-2.0
// Objects of an S3 service over HTTP. A file is an object, an operation is one request: a put of the whole object or of
// one part, or a get of a range. libcurl allocates memory in each request; this is the only backend that does.
#include "backends/names_s3.hpp"
#include "backends/s3_object.hpp"
#include "backends/s3_queue.hpp"
#include "objects/client.hpp"

#include <cerrno>

namespace sonde::backends {
namespace {

class S3Channel final : public Channel {
 public:
    explicit S3Channel(const ChannelSetup& setup)
        : settings_(objects::read_store_settings(setup.target->path, setup.target->s3.value_or(plan::ObjectStore{}))),
          client_(settings_, static_cast<std::size_t>(setup.task)),
          length_(setup.max_length),
          objects_(setup.file_count) {
        if (setup.io->queue_depth > 1) {
            queue_ = std::make_unique<S3Queue>(settings_, setup.task, setup.io->queue_depth);
        }
    }

    int open(std::uint16_t file, const OpenRequest& request) override {
        return store_failure(objects_[file].open(client_, request, length_), objects_[file]);
    }
    int fsync(std::uint16_t /*file*/) override { return -EOPNOTSUPP; }
    int close(std::uint16_t file) override { return store_failure(objects_[file].close(client_), objects_[file]); }

    std::int64_t transfer(const IoRequest& operation) noexcept override {
        S3Object& object = objects_[operation.file_index];
        const std::int64_t moved = client_.perform(object.make_request(operation, query_));
        if (moved < 0) {
            failure_ = client_.failure();
        } else {
            object.add_part(operation, client_.exchange().entity_tag());
        }
        return moved;
    }
    bool submit(const IoRequest& operation) noexcept override {
        return queue_->submit(operation, objects_[operation.file_index]);
    }
    std::size_t reap(std::span<Completion> done) noexcept override {
        const std::size_t count = queue_->reap(done);
        failure_ = queue_->failure();
        return count;
    }

    int stat(Directory /*root*/, const char* path) noexcept override {
        return store_failure(client_.head(objects::key_of(path)));
    }
    int remove(Directory /*root*/, const char* path) noexcept override {
        return store_failure(client_.remove(objects::key_of(path)));
    }
    NameOperations* name_operations() override {
        if (name_operations_ == nullptr) {
            name_operations_ = make_s3_name_operations(client_);
        }
        return name_operations_.get();
    }

    std::uint64_t retries() const noexcept override {
        return client_.retries() + (queue_ == nullptr ? 0 : queue_->retries());
    }
    const char* last_error_text() const noexcept override {
        return failure_.empty() ? client_.failure().c_str() : failure_.c_str();
    }

 private:
    int store_failure(int result) noexcept {
        failure_ = result < 0 ? client_.failure() : std::string();
        return result;
    }
    int store_failure(int result, const S3Object& object) noexcept {
        failure_ =
            result < 0 ? (object.explanation().empty() ? client_.failure() : object.explanation()) : std::string();
        return result;
    }

    objects::StoreSettings settings_;
    objects::StoreClient client_;
    std::uint32_t length_;
    std::vector<S3Object> objects_;
    std::unique_ptr<S3Queue> queue_;
    std::unique_ptr<NameOperations> name_operations_;
    std::string query_, failure_;
};

}  // namespace

extern const Backend s3_backend;
const Backend s3_backend{
    .name = "s3",
    .summary = "objects of an S3 service: put, get, multipart upload, head, list, delete",
    .traits = {.stores_data = true,
               .needs_files = false,
               .supports_queue = true,
               .supports_trees = true,
               .stores_objects = true},
    .check_availability =
        [](const std::string&) {
            std::string reason = objects::explain_missing_curl();
            return Availability{reason.empty(), std::move(reason)};
        },
    .make_channel = [](const ChannelSetup& setup) -> std::unique_ptr<Channel> {
        return std::make_unique<S3Channel>(setup);
    },
};

}  // namespace sonde::backends
