// SPDX-License-Identifier: Apache-2.0
#include "objects/client.hpp"

#include <time.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace sonde::objects {
namespace {

void sleep_ms(int ms) {
    timespec remaining{ms / 1000, ms % 1000 * 1'000'000L};
    while (nanosleep(&remaining, &remaining) != 0 && errno == EINTR) {
    }
}

/// Calls `take` with the content of each `<name>` element.
template <class Take>
void for_each_element(std::string_view xml, const std::string& name, Take take) {
    const std::string open = "<" + name + ">";
    const std::string close = "</" + name + ">";
    for (std::size_t begin = xml.find(open); begin != std::string_view::npos; begin = xml.find(open, begin)) {
        const std::size_t end = xml.find(close, begin);
        if (end == std::string_view::npos) {
            return;
        }
        take(xml.substr(begin + open.size(), end - begin - open.size()));
        begin = end + close.size();
    }
}

std::span<const std::byte> view_as_bytes(std::string_view text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

int backoff_ms(int repetition) {
    constexpr int first = 25;
    constexpr int most = 1000;
    return repetition > 6 ? most : std::min(most, first << (repetition - 1));
}

std::string describe_failure(const std::string& reason, int repetitions) {
    return repetitions == 0
               ? reason
               : reason + ", also after " + std::to_string(repetitions) + (repetitions == 1 ? " retry" : " retries");
}

std::string part_query(std::uint64_t number, std::string_view upload) {
    return "partNumber=" + std::to_string(number) + "&uploadId=" + percent_encode(upload, false);
}

std::int64_t StoreClient::perform(const StoreRequest& call) {
    int repetitions = 0;
    RequestResult ending = exchange_.perform(call);
    while (ending.value < 0 && ending.is_temporary && repetitions < settings_.retries) {
        sleep_ms(backoff_ms(++repetitions));
        ++retries_;
        ending = exchange_.perform(call);
    }
    if (ending.value < 0) {
        failure_ = describe_failure(exchange_.failure(), repetitions);
    }
    return ending.value;
}

int StoreClient::put(std::string_view key, std::span<const std::byte> content, bool exclusive) {
    return static_cast<int>(std::min<std::int64_t>(0, perform({.method = Method::put,
                                                               .key = key,
                                                               .query = {},
                                                               .body = content,
                                                               .destination = {},
                                                               .response_text = nullptr,
                                                               .first_byte = -1,
                                                               .exclusive = exclusive})));
}

int StoreClient::get_text(std::string_view key, std::string& text) {
    StoreRequest call;
    call.key = key;
    call.response_text = &text;
    return static_cast<int>(std::min<std::int64_t>(0, perform(call)));
}

int StoreClient::head(std::string_view key) {
    StoreRequest call;
    call.method = Method::head;
    call.key = key;
    return static_cast<int>(std::min<std::int64_t>(0, perform(call)));
}

int StoreClient::remove(std::string_view key) {
    StoreRequest call;
    call.method = Method::remove;
    call.key = key;
    return static_cast<int>(std::min<std::int64_t>(0, perform(call)));
}

int StoreClient::check_bucket() {
    // Unlike HEAD, a listing has a body that says what is wrong.
    std::string text;
    StoreRequest call;
    call.query = "list-type=2&max-keys=1";
    call.response_text = &text;
    return static_cast<int>(std::min<std::int64_t>(0, perform(call)));
}

int StoreClient::list(std::string_view prefix, bool delimiter, std::string& token, std::vector<ListedObject>& page) {
    page.clear();
    std::string query = token.empty() ? std::string() : "continuation-token=" + percent_encode(token, false) + "&";
    query += delimiter ? "delimiter=%2F&" : "";
    query += "list-type=2&prefix=" + percent_encode(prefix, false);
    std::string xml;
    StoreRequest call;
    call.query = query;
    call.response_text = &xml;
    if (const std::int64_t failed = perform(call); failed < 0) {
        return static_cast<int>(failed);
    }
    for_each_element(xml, "Contents", [&page](std::string_view element) {
        page.push_back(
            {find_element(element, "Key"), std::strtoull(find_element(element, "Size").c_str(), nullptr, 10), false});
    });
    for_each_element(xml, "CommonPrefixes", [&page](std::string_view element) {
        page.push_back({find_element(element, "Prefix"), 0, true});
    });
    token = find_element(xml, "IsTruncated") == "true" ? find_element(xml, "NextContinuationToken") : std::string();
    return 0;
}

std::string StoreClient::begin_upload(std::string_view key) {
    std::string xml;
    StoreRequest call;
    call.method = Method::post;
    call.key = key;
    call.query = "uploads=";
    call.response_text = &xml;
    if (perform(call) < 0) {
        return {};
    }
    std::string upload = find_element(xml, "UploadId");
    failure_ = upload.empty() ? "the server gave a multipart upload no id" : failure_;
    return upload;
}

int StoreClient::complete_upload(std::string_view key, std::string_view upload, std::span<const std::string> tags,
                                 bool exclusive) {
    std::string parts = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
    for (std::size_t i = 0; i < tags.size(); ++i) {
        parts += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + tags[i] + "</ETag></Part>";
    }
    parts += "</CompleteMultipartUpload>";
    std::string xml;
    const std::string query = "uploadId=" + percent_encode(upload, false);
    const std::int64_t failed = perform({.method = Method::post,
                                         .key = key,
                                         .query = query,
                                         .body = view_as_bytes(parts),
                                         .destination = {},
                                         .response_text = &xml,
                                         .first_byte = -1,
                                         .exclusive = exclusive});
    if (failed < 0) {
        return static_cast<int>(failed);
    }
    // A server that needs long has sent its status before it knows the result.
    if (xml.find("<Error>") != std::string::npos) {
        failure_ = find_element(xml, "Code") + ": " + find_element(xml, "Message");
        return -EREMOTEIO;
    }
    return 0;
}

int StoreClient::abort_upload(std::string_view key, std::string_view upload) {
    const std::string query = "uploadId=" + percent_encode(upload, false);
    StoreRequest call;
    call.method = Method::remove;
    call.key = key;
    call.query = query;
    return static_cast<int>(std::min<std::int64_t>(0, perform(call)));
}

std::int64_t StoreClient::abort_uploads(std::string_view prefix,
                                        const std::function<bool(const std::string& key)>& is_ours) {
    std::int64_t aborted = 0;
    std::string markers;
    for (bool more = true; more;) {
        std::string xml;
        StoreRequest call;
        const std::string query =
            markers.empty() ? "prefix=" + percent_encode(prefix, false) + "&uploads=" : markers + "&uploads=";
        call.query = query;
        call.response_text = &xml;
        if (const std::int64_t failed = perform(call); failed < 0) {
            return failed;
        }
        std::vector<std::pair<std::string, std::string>> uploads;
        for_each_element(xml, "Upload", [&uploads](std::string_view element) {
            uploads.emplace_back(find_element(element, "Key"), find_element(element, "UploadId"));
        });
        for (const auto& [key, upload] : uploads) {
            if (is_ours(key)) {
                if (const int failed = abort_upload(key, upload); failed < 0 && failed != -ENOENT) {
                    return failed;
                }
                ++aborted;
            }
        }
        more = find_element(xml, "IsTruncated") == "true";
        markers = "key-marker=" + percent_encode(find_element(xml, "NextKeyMarker"), false) +
                  "&prefix=" + percent_encode(prefix, false) +
                  "&upload-id-marker=" + percent_encode(find_element(xml, "NextUploadIdMarker"), false);
    }
    return aborted;
}

}  // namespace sonde::objects
