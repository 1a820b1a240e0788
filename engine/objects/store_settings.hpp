// SPDX-License-Identifier: Apache-2.0
// Location and credentials of an object store: from the plan, the environment and the credentials file of AWS tools.
#pragma once

#include "plan/plan.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::objects {

/// The key pair that signs requests. It is never written anywhere.
struct Credentials {
    std::string key_id, secret;
    std::string session_token;  ///< empty: none
};

struct StoreSettings {
    std::string bucket;
    std::string prefix;                  ///< of the target, without slashes at its ends; may be empty
    std::vector<std::string> endpoints;  ///< "https://host:port", at least one
    std::string region;
    bool virtual_hosts = false;  ///< https://bucket.host/key instead of https://host/bucket/key
    std::string ca_file;         ///< empty: the system's
    int retries = 0;             ///< of one request at most
    std::int64_t timeout_ns = 0;
    Credentials credentials;
};

/// Whether a target is a bucket: "s3://bucket" or "s3://bucket/prefix".
bool is_object_url(std::string_view target);

/// The settings for a target. Throws std::runtime_error with one sentence when the address has no bucket or no
/// credentials are found.
StoreSettings read_store_settings(const std::string& target, const plan::ObjectStore& store);

/// Key of an object that is named as "s3://bucket/key".
std::string_view key_of(std::string_view url);

/// `text` with all bytes but letters, digits, '-', '.', '_' and '~' as %XX. `keep_slashes` keeps '/'.
std::string percent_encode(std::string_view text, bool keep_slashes);
/// Appends that to `url`.
void append_percent_encoded(std::string& url, std::string_view text, bool keep_slashes);

/// URL of a bucket without a slash at its end: requests append "/key".
std::string bucket_url(const StoreSettings& settings, std::size_t endpoint);

}  // namespace sonde::objects
