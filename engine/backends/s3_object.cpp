// SPDX-License-Identifier: Apache-2.0
#include "backends/s3_object.hpp"

#include <algorithm>
#include <cerrno>

namespace sonde::backends {

namespace {

constexpr std::uint64_t max_parts = 10'000;  // of S3

}  // namespace

int S3Object::open(objects::StoreClient& client, const OpenRequest& request, std::uint32_t length) {
    key_ = objects::key_of(request.path);
    length_ = length;
    exclusive_ = request.exclusive;
    upload_.clear();
    entity_tags_.clear();
    explanation_.clear();
    if (!request.write || request.size <= length) {
        return 0;
    }
    const std::uint64_t parts = (request.size + length - 1) / length;
    if (parts > max_parts) {
        explanation_ = "the object would have " + std::to_string(parts) + " parts, but S3 allows " +
                       std::to_string(max_parts) + ": make data.access.transfer larger";
        return -EFBIG;
    }
    upload_ = client.begin_upload(key_);
    entity_tags_.resize(parts);
    return upload_.empty() ? -EREMOTEIO : 0;
}

int S3Object::close(objects::StoreClient& client) {
    if (upload_.empty()) {
        return 0;
    }
    // Parts follow each other without gaps: a phase that ended early leaves a shorter object.
    const auto missing = std::find(entity_tags_.begin(), entity_tags_.end(), std::string());
    const auto last =
        std::find_if(entity_tags_.rbegin(), entity_tags_.rend(), [](const std::string& tag) { return !tag.empty(); });
    const auto uploaded = static_cast<std::size_t>(missing - entity_tags_.begin());
    const bool has_gap = last != entity_tags_.rend() && last.base() > missing;
    int result = 0;
    if (uploaded == 0 || has_gap) {
        result = client.abort_upload(key_, upload_);
        if (has_gap) {
            explanation_ = "a part in the middle of the object is missing, so the upload was aborted";
            result = -EIO;
        }
    } else {
        result = client.complete_upload(key_, upload_, {entity_tags_.data(), uploaded}, exclusive_);
    }
    upload_.clear();
    return result;
}

objects::StoreRequest S3Object::make_request(const IoRequest& operation, std::string& query) const {
    objects::StoreRequest call;
    call.key = key_;
    if (!operation.is_write) {
        call.destination = {operation.buffer, operation.length};
        call.first_byte = static_cast<std::int64_t>(operation.offset);
        return call;
    }
    call.method = objects::Method::put;
    call.body = {operation.buffer, operation.length};
    call.exclusive = exclusive_ && upload_.empty();
    if (!upload_.empty()) {
        query = objects::part_query(part_index(operation) + 1, upload_);
        call.query = query;
    }
    return call;
}

void S3Object::add_part(const IoRequest& operation, const std::string& entity_tag) {
    if (operation.is_write && !upload_.empty() && part_index(operation) < entity_tags_.size()) {
        entity_tags_[part_index(operation)] = entity_tag.empty() ? "\"\"" : entity_tag;
    }
}

}  // namespace sonde::backends
