// SPDX-License-Identifier: Apache-2.0
// Requests to an object store one after the other, each repeated while it fails for a temporary reason.
#pragma once

#include "objects/exchange.hpp"
#include "objects/store_settings.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::objects {

/// Milliseconds to wait before the n-th repetition (n = 1, 2, …) of a request: 25, 50, 100, … up to 1000.
int backoff_ms(int repetition);

/// One element of a listing.
struct ListedObject {
    std::string key;
    std::uint64_t bytes = 0;
    bool is_prefix = false;  ///< common prefix of several keys; ends with '/'
};

class StoreClient {
 public:
    /// `settings` must outlive it. Throws std::runtime_error when libcurl cannot be used.
    StoreClient(const StoreSettings& settings, std::size_t endpoint)
        : settings_(settings), exchange_(settings, endpoint) {}

    /// Bytes of the content, or -errno with failure().
    std::int64_t perform(const StoreRequest& call);
    /// Repetitions of requests so far.
    std::uint64_t retries() const { return retries_; }
    /// Why the last request failed, with the number of its repetitions.
    const std::string& failure() const { return failure_; }
    const Exchange& exchange() const { return exchange_; }

    int put(std::string_view key, std::span<const std::byte> content, bool exclusive);
    /// The content as text; -ENOENT when there is no such object.
    int get_text(std::string_view key, std::string& text);
    int head(std::string_view key);
    int remove(std::string_view key);
    /// Whether the bucket exists and may be listed: 0 or -errno.
    int check_bucket();
    /// One page of the objects below `prefix`, up to 1,000. With `delimiter` common prefixes instead of what is below
    /// them. `token` is empty at first and empty again after the last page.
    int list(std::string_view prefix, bool delimiter, std::string& token, std::vector<ListedObject>& page);

    /// Begins a multipart upload; its id, empty on failure (failure()).
    std::string begin_upload(std::string_view key);
    /// Completes it. `tags`: entity tags of parts 1, 2, …
    int complete_upload(std::string_view key, std::string_view upload, std::span<const std::string> tags,
                        bool exclusive);
    int abort_upload(std::string_view key, std::string_view upload);
    /// Aborts all uploads below a prefix for whose key `is_ours` is true; their number, or -errno.
    std::int64_t abort_uploads(std::string_view prefix, const std::function<bool(const std::string& key)>& is_ours);

 private:
    const StoreSettings& settings_;
    Exchange exchange_;
    std::uint64_t retries_ = 0;
    std::string failure_;
};

/// Query of a request for a part: "partNumber=N&uploadId=ID".
std::string part_query(std::uint64_t number, std::string_view upload);
/// The message of a failed request: `reason`, and how often it was repeated.
std::string describe_failure(const std::string& reason, int repetitions);

}  // namespace sonde::objects
