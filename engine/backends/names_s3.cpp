// SPDX-License-Identifier: Apache-2.0
#include "backends/names_s3.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::backends {
namespace {

class S3NameOperations final : public NameOperations {
 public:
    explicit S3NameOperations(objects::StoreClient& client) : client_(client) {}

    // A prefix exists as soon as somebody names it, so entering sends no request.
    Directory open_directory(Directory parent, const char* name) noexcept override {
        const auto unused = std::find_if(open_prefixes_.begin(), open_prefixes_.end(),
                                         [](const OpenPrefix& prefix) { return !prefix.is_used; });
        const auto index = unused - open_prefixes_.begin();
        if (unused == open_prefixes_.end()) {
            open_prefixes_.emplace_back();
        }
        std::string key = make_object_key(parent, name);
        OpenPrefix& prefix = open_prefixes_[static_cast<std::size_t>(index)];
        prefix = {.key = key.empty() ? key : key + "/",
                  .is_used = true,
                  .token = {},
                  .page = {},
                  .next = 0,
                  .is_begun = false};
        return static_cast<Directory>(index);
    }
    void close_directory(Directory directory) noexcept override {
        open_prefixes_[static_cast<std::size_t>(directory)].is_used = false;
    }

    int make_file(Directory parent, const char* name, const NewFileOptions& options) noexcept override {
        return options.use_mknod || options.fsync
                   ? -EOPNOTSUPP
                   : client_.put(make_object_key(parent, name), options.content, options.exclusive);
    }
    int stat_entry(Directory parent, const char* name, const StatOptions& /*options*/) noexcept override {
        return client_.head(make_object_key(parent, name));
    }
    int read_attributes(Directory parent, const char* name, const StatOptions& /*options*/,
                        EntryAttributes& attributes) noexcept override {
        attributes.kind = EntryKind::file;
        const int result = client_.head(make_object_key(parent, name));
        attributes.bytes = client_.exchange().content_length();
        return result;
    }
    std::int64_t read_file(Directory parent, const char* name, std::span<std::byte> into) noexcept override {
        const std::string key = make_object_key(parent, name);
        objects::StoreRequest call;
        call.key = key;
        call.destination = into;
        call.first_byte = 0;
        return client_.perform(call);
    }
    int remove_file(Directory parent, const char* name) noexcept override {
        return client_.remove(make_object_key(parent, name));
    }

    std::int64_t read_entries(Directory directory, std::span<std::byte> buffer) noexcept override;
    bool next_entry(std::span<const std::byte> entries, std::size_t& position,
                    DirectoryEntry& entry) const noexcept override;

    // Calls that an object store lacks; check_objects.cpp rejects plans that would make them.
    int make_directory(Directory /*parent*/, const char* /*name*/) noexcept override { return -EOPNOTSUPP; }
    int open_close(Directory /*parent*/, const char* /*name*/) noexcept override { return -EOPNOTSUPP; }
    int rename(Directory /*parent*/, const char* /*name*/, const char* /*to*/) noexcept override { return -EOPNOTSUPP; }
    int remove_directory(Directory /*parent*/, const char* /*name*/) noexcept override { return -EOPNOTSUPP; }
    int sync_file_system(Directory /*directory*/) noexcept override { return -EOPNOTSUPP; }

 private:
    struct OpenPrefix {
        std::string key;  ///< ends with '/', or empty
        bool is_used = false;
        std::string token;  ///< of the next page
        std::vector<objects::ListedObject> page;
        std::size_t next = 0;
        bool is_begun = false;
    };

    std::string make_object_key(Directory parent, const char* name) const {
        const std::string_view path = name;
        if (parent == current_directory) {
            return std::string(objects::key_of(path));
        }
        return open_prefixes_[static_cast<std::size_t>(parent)].key + name;
    }

    objects::StoreClient& client_;
    std::vector<OpenPrefix> open_prefixes_;
};

/// Entries in the buffer: one byte for the kind, then the name with its zero byte.
std::int64_t S3NameOperations::read_entries(Directory directory, std::span<std::byte> buffer) noexcept {
    OpenPrefix& prefix = open_prefixes_[static_cast<std::size_t>(directory)];
    if (prefix.next == prefix.page.size()) {
        if (prefix.is_begun && prefix.token.empty()) {
            return 0;
        }
        prefix.is_begun = true;
        prefix.next = 0;
        if (const int failed = client_.list(prefix.key, true, prefix.token, prefix.page); failed < 0) {
            return failed;
        }
    }
    std::size_t used = 0;
    for (; prefix.next < prefix.page.size(); ++prefix.next) {
        const objects::ListedObject& object = prefix.page[prefix.next];
        std::string_view name(object.key);
        name.remove_prefix(std::min(prefix.key.size(), name.size()));
        name = name.substr(0, name.size() - (object.is_prefix ? 1 : 0));
        if (used + name.size() + 2 > buffer.size()) {
            break;
        }
        buffer[used++] = static_cast<std::byte>(object.is_prefix ? EntryKind::directory : EntryKind::file);
        std::memcpy(buffer.data() + used, name.data(), name.size());
        used += name.size();
        buffer[used++] = std::byte{0};
    }
    return static_cast<std::int64_t>(used);
}

bool S3NameOperations::next_entry(std::span<const std::byte> entries, std::size_t& position,
                                  DirectoryEntry& entry) const noexcept {
    if (position >= entries.size()) {
        return false;
    }
    entry.kind = static_cast<EntryKind>(entries[position]);
    entry.name = reinterpret_cast<const char*>(entries.data() + position + 1);
    position += std::strlen(entry.name) + 2;
    return true;
}

}  // namespace

std::unique_ptr<NameOperations> make_s3_name_operations(objects::StoreClient& client) {
    return std::make_unique<S3NameOperations>(client);
}

}  // namespace sonde::backends
