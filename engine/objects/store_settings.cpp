// SPDX-License-Identifier: Apache-2.0
#include "objects/store_settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>

namespace sonde::objects {
namespace {

constexpr std::string_view scheme = "s3://";

/// The value of the first of these environment variables that is set and not empty; empty if none is.
std::string read_environment(std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
            return value;
        }
    }
    return {};
}

std::string trim(const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t\r");
    return first == std::string::npos ? std::string() : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// The members of one profile in a file of AWS tools: "[name]", then "key = value".
std::map<std::string, std::string> read_profile(const std::string& path, const std::string& profile) {
    std::map<std::string, std::string> members;
    std::ifstream file(path);
    bool is_wanted = false;
    for (std::string line; std::getline(file, line);) {
        line = trim(line);
        const std::size_t equals = line.find('=');
        if (line.starts_with('[')) {
            is_wanted = line == "[" + profile + "]" || line == "[profile " + profile + "]";
        } else if (is_wanted && equals != std::string::npos && line[0] != '#' && line[0] != ';') {
            members[trim(line.substr(0, equals))] = trim(line.substr(equals + 1));
        }
    }
    return members;
}

Credentials read_credentials() {
    Credentials credentials{read_environment({"AWS_ACCESS_KEY_ID"}), read_environment({"AWS_SECRET_ACCESS_KEY"}),
                            read_environment({"AWS_SESSION_TOKEN"})};
    if (!credentials.key_id.empty() && !credentials.secret.empty()) {
        return credentials;
    }
    std::string path = read_environment({"AWS_SHARED_CREDENTIALS_FILE"});
    if (path.empty()) {
        path = read_environment({"HOME"}) + "/.aws/credentials";
    }
    std::string profile = read_environment({"AWS_PROFILE"});
    profile = profile.empty() ? "default" : profile;
    std::map<std::string, std::string> members = read_profile(path, profile);
    credentials = {members["aws_access_key_id"], members["aws_secret_access_key"], members["aws_session_token"]};
    if (credentials.key_id.empty() || credentials.secret.empty()) {
        throw std::runtime_error("no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write [" +
                                 profile + "] into " + path);
    }
    return credentials;
}

}  // namespace

bool is_object_url(std::string_view target) {
    return target.starts_with(scheme);
}

std::string_view key_of(std::string_view url) {
    const std::size_t slash = url.find('/', scheme.size());
    return slash == std::string_view::npos ? std::string_view() : url.substr(slash + 1);
}

StoreSettings read_store_settings(const std::string& target, const plan::ObjectStore& store) {
    StoreSettings settings;
    const std::size_t slash = target.find('/', scheme.size());
    settings.bucket = target.substr(scheme.size(), slash == std::string::npos ? slash : slash - scheme.size());
    settings.prefix = key_of(target);
    while (settings.prefix.ends_with('/')) {
        settings.prefix.pop_back();
    }
    if (settings.bucket.empty()) {
        throw std::runtime_error("target " + target + " names no bucket: write s3://BUCKET or s3://BUCKET/PREFIX");
    }
    settings.region = store.region.empty() ? read_environment({"AWS_REGION", "AWS_DEFAULT_REGION"}) : store.region;
    settings.region = settings.region.empty() ? "us-east-1" : settings.region;
    settings.endpoints = store.endpoints;
    if (settings.endpoints.empty()) {
        const std::string endpoint = read_environment({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
        settings.endpoints = {endpoint.empty() ? "https://s3." + settings.region + ".amazonaws.com" : endpoint};
    }
    for (std::string& endpoint : settings.endpoints) {
        while (endpoint.ends_with('/')) {
            endpoint.pop_back();
        }
        if (!endpoint.starts_with("http://") && !endpoint.starts_with("https://")) {
            throw std::runtime_error("endpoint " + endpoint + " is no address of a server: write https://HOST:PORT");
        }
    }
    settings.virtual_hosts = store.virtual_hosts;
    settings.ca_file = store.ca_file.empty() ? read_environment({"AWS_CA_BUNDLE"}) : store.ca_file;
    settings.retries = store.retries;
    settings.timeout_ns = store.timeout;
    settings.credentials = read_credentials();
    return settings;
}

void append_percent_encoded(std::string& url, std::string_view text, bool keep_slashes) {
    constexpr const char* digits = "0123456789ABCDEF";
    const auto is_plain = [keep_slashes](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
               c == '_' || c == '~' || (c == '/' && keep_slashes);
    };
    for (auto position = text.begin(); position != text.end();) {
        const auto plain_end = std::find_if_not(position, text.end(), is_plain);
        url.append(position, plain_end);
        position = plain_end;
        if (position != text.end()) {
            const auto byte = static_cast<unsigned char>(*position++);
            url += {'%', digits[byte >> 4U], digits[byte & 15U]};
        }
    }
}

std::string percent_encode(std::string_view text, bool keep_slashes) {
    std::string encoded;
    append_percent_encoded(encoded, text, keep_slashes);
    return encoded;
}

std::string bucket_url(const StoreSettings& settings, std::size_t endpoint) {
    const std::string& server = settings.endpoints[endpoint % settings.endpoints.size()];
    if (!settings.virtual_hosts) {
        return server + "/" + settings.bucket;
    }
    const std::size_t host = server.find("://") + 3;
    return server.substr(0, host) + settings.bucket + "." + server.substr(host);
}

}  // namespace sonde::objects
