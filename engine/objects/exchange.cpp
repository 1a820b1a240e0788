// SPDX-License-Identifier: Apache-2.0
#include "objects/exchange.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace sonde::objects {
namespace {

constexpr std::size_t longest_rejection = 4096;
constexpr long largest_buffer = 512L << 10U;  // the most that libcurl allows to receive

bool equals_ignoring_case(std::string_view a, std::string_view b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
               return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
           });
}

int errno_of_status(int status) {
    switch (status) {
        case 400:
            return EINVAL;
        case 401:
        case 403:
            return EACCES;
        case 404:
            return ENOENT;
        case 405:
        case 501:
            return EOPNOTSUPP;
        case 412:
            return EEXIST;
        case 409:
        case 429:
        case 503:
            return EBUSY;
        case 507:
            return ENOSPC;
        default:
            return EREMOTEIO;
    }
}

bool is_temporary_status(int status) {
    return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

/// libcurl's CURLcode.
int errno_of_curl(int code) {
    switch (code) {
        case 5:
        case 6:
            return EHOSTUNREACH;
        case 7:
            return ECONNREFUSED;
        case 18:
        case 52:
        case 55:
        case 56:
            return ECONNRESET;
        case 28:
            return ETIMEDOUT;
        case 23:
            return EMSGSIZE;
        default:
            return EPROTO;
    }
}

bool is_temporary_curl(int code) {
    return code == 7 || code == 18 || code == 28 || code == 52 || code == 55 || code == 56;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (std::size_t position = text.find(from); position != std::string::npos;
         position = text.find(from, position + to.size())) {
        text.replace(position, from.size(), to);
    }
}

}  // namespace

std::string find_element(std::string_view xml, std::string_view name) {
    const std::string open = "<" + std::string(name) + ">";
    const std::size_t begin = xml.find(open);
    const std::size_t end = begin == std::string_view::npos ? begin : xml.find("</" + std::string(name) + ">", begin);
    if (end == std::string_view::npos) {
        return {};
    }
    std::string text(xml.substr(begin + open.size(), end - begin - open.size()));
    for (const auto& [entity, character] :
         {std::pair{"&lt;", "<"}, std::pair{"&gt;", ">"}, std::pair{"&quot;", "\""}, std::pair{"&#34;", "\""},
          std::pair{"&apos;", "'"}, std::pair{"&amp;", "&"}}) {
        replace_all(text, entity, character);
    }
    return text;
}

Exchange::Exchange(const StoreSettings& settings, std::size_t endpoint)
    : curl_(load_curl()), curl_handle_(curl_.easy_init()), bucket_url_(bucket_url(settings, endpoint)) {
    if (curl_handle_ == nullptr) {
        throw std::runtime_error("libcurl has no memory for a request");
    }
    set_constant_options(settings);
}

Exchange::~Exchange() {
    curl_.easy_cleanup(curl_handle_);
    curl_.list_free(headers_);
    curl_.list_free(exclusive_headers_);
}

void Exchange::set_constant_options(const StoreSettings& settings) {
    // "Expect: 100-continue" would cost a round trip before each content. The content is not part of the signature,
    // because hashing it would take more processor time than sending it.
    for (CurlList** list : {&headers_, &exclusive_headers_}) {
        for (const char* header :
             {"Expect:", "Content-Type: application/octet-stream", "x-amz-content-sha256: UNSIGNED-PAYLOAD"}) {
            *list = curl_.list_append(*list, header);
        }
        if (!settings.credentials.session_token.empty()) {
            *list = curl_.list_append(*list, ("x-amz-security-token: " + settings.credentials.session_token).c_str());
        }
    }
    exclusive_headers_ = curl_.list_append(exclusive_headers_, "If-None-Match: *");
    const long seconds = std::max<long>(1, static_cast<long>(settings.timeout_ns / 1'000'000'000));
    curl_.set(curl_handle_, CurlOption::no_signal, 1L);
    curl_.set(curl_handle_, CurlOption::protocols, "http,https");
    curl_.set(curl_handle_, CurlOption::http_version, 2L);  // 1.1: one request at a time on a connection
    curl_.set(curl_handle_, CurlOption::receive_buffer, largest_buffer);
    curl_.set(curl_handle_, CurlOption::upload_buffer, largest_buffer);
    curl_.set(curl_handle_, CurlOption::connect_timeout_ms,
              std::max(1L, static_cast<long>(settings.timeout_ns / 1'000'000)));
    curl_.set(curl_handle_, CurlOption::low_speed_limit, 1L);
    curl_.set(curl_handle_, CurlOption::low_speed_time, seconds);
    curl_.set(curl_handle_, CurlOption::error_text, curl_text_.data());
    curl_.set(curl_handle_, CurlOption::sign_v4, ("aws:amz:" + settings.region + ":s3").c_str());
    curl_.set(curl_handle_, CurlOption::user_and_password,
              (settings.credentials.key_id + ":" + settings.credentials.secret).c_str());
    if (!settings.ca_file.empty()) {
        curl_.set(curl_handle_, CurlOption::ca_file, settings.ca_file.c_str());
    }
    curl_.set(curl_handle_, CurlOption::write_function, &Exchange::receive_content);
    curl_.set(curl_handle_, CurlOption::write_data, this);
    curl_.set(curl_handle_, CurlOption::read_function, &Exchange::send_content);
    curl_.set(curl_handle_, CurlOption::read_data, this);
    curl_.set(curl_handle_, CurlOption::seek_function, &Exchange::rewind_content);
    curl_.set(curl_handle_, CurlOption::seek_data, this);
    curl_.set(curl_handle_, CurlOption::header_function, &Exchange::receive_header);
    curl_.set(curl_handle_, CurlOption::header_data, this);
    set_headers(headers_);
}

void Exchange::set_method(Method method) {
    if (method == method_ && method != Method::post) {
        return;
    }
    curl_.set(curl_handle_, CurlOption::custom_request, static_cast<const char*>(nullptr));
    curl_.set(curl_handle_, CurlOption::upload, 0L);
    curl_.set(curl_handle_, CurlOption::no_body, 0L);
    switch (method) {
        case Method::get:
            curl_.set(curl_handle_, CurlOption::http_get, 1L);
            break;
        case Method::head:
            curl_.set(curl_handle_, CurlOption::no_body, 1L);
            break;
        case Method::put:
            curl_.set(curl_handle_, CurlOption::upload, 1L);
            break;
        case Method::remove:
            curl_.set(curl_handle_, CurlOption::http_get, 1L);
            curl_.set(curl_handle_, CurlOption::custom_request, "DELETE");
            break;
        case Method::post:
            curl_.set(curl_handle_, CurlOption::post, 1L);
            break;
    }
    method_ = method;
}

void Exchange::prepare(const StoreRequest& call) {
    request_ = call;
    sent_ = received_ = 0;
    content_overflowed_ = false;
    http_status_ = 0;
    content_length_ = 0;
    entity_tag_.clear();
    rejection_.clear();
    failure_.clear();
    curl_text_[0] = '\0';
    if (call.response_text != nullptr) {
        call.response_text->clear();
    }
    url_ = bucket_url_;
    url_ += '/';
    append_percent_encoded(url_, call.key, true);
    if (!call.query.empty()) {
        url_ += '?';
        url_ += call.query;
    }
    set_method(call.method);
    curl_.set(curl_handle_, CurlOption::url, url_.c_str());
    set_headers(call.exclusive ? exclusive_headers_ : headers_);
    if (call.method == Method::put) {
        curl_.set(curl_handle_, CurlOption::upload_size, static_cast<std::int64_t>(call.body.size()));
    } else if (call.method == Method::post) {
        curl_.set(curl_handle_, CurlOption::post_fields, reinterpret_cast<const char*>(call.body.data()));
        curl_.set(curl_handle_, CurlOption::post_size, static_cast<std::int64_t>(call.body.size()));
    }
    const bool has_range = call.method == Method::get && call.first_byte >= 0;
    set_range(has_range ? call.first_byte : -1, has_range ? call.destination.size() : 0);
}

// libcurl copies what an option gets: an option that stays as it is is not set again.
void Exchange::set_headers(CurlList* headers) {
    if (headers != used_headers_) {
        curl_.set(curl_handle_, CurlOption::headers, headers);
        used_headers_ = headers;
    }
}

void Exchange::set_range(std::int64_t first, std::size_t bytes) {
    if (first == range_first_ && bytes == range_bytes_) {
        return;
    }
    std::array<char, 64> range{};
    if (first >= 0) {
        std::snprintf(range.data(), range.size(), "%lld-%lld", static_cast<long long>(first),
                      static_cast<long long>(first) + static_cast<long long>(bytes) - 1);
    }
    curl_.set(curl_handle_, CurlOption::range, first < 0 ? static_cast<const char*>(nullptr) : range.data());
    range_first_ = first;
    range_bytes_ = bytes;
}

RequestResult Exchange::perform(const StoreRequest& call) {
    prepare(call);
    return evaluate_response(curl_.easy_perform(curl_handle_));
}

RequestResult Exchange::evaluate_response(int code) {
    if (code != curl_ok) {
        return evaluate_failed_transfer(code);
    }
    long status = 0;
    curl_.easy_getinfo(curl_handle_, curl_info_status, &status);
    http_status_ = static_cast<int>(status);
    const bool beyond_end = http_status_ == 416;
    if (beyond_end || (http_status_ >= 200 && http_status_ < 300)) {
        // A server that ignores the range sends another part of the object.
        if (request_.method == Method::get && request_.first_byte > 0 && http_status_ == 200) {
            failure_ = "the server ignores ranges";
            return {-EOPNOTSUPP, false};
        }
        const bool sends = request_.method == Method::put || request_.method == Method::post;
        return {beyond_end ? 0 : static_cast<std::int64_t>(sends ? request_.body.size() : received_), false};
    }
    return evaluate_rejected_request();
}

RequestResult Exchange::evaluate_failed_transfer(int code) {
    if (content_overflowed_) {
        failure_ = "the response is longer than what was asked for";
        return {-EMSGSIZE, false};
    }
    failure_ = curl_text_[0] != '\0' ? curl_text_.data() : curl_.easy_strerror(code);
    return {-errno_of_curl(code), is_temporary_curl(code)};
}

RequestResult Exchange::evaluate_rejected_request() {
    const std::string code = find_element(rejection_, "Code");
    const std::string message = find_element(rejection_, "Message");
    failure_ =
        std::to_string(http_status_) + (code.empty() ? "" : " " + code) + (message.empty() ? "" : ": " + message);
    if (failure_.size() > 240) {
        failure_.resize(240);
    }
    return {-errno_of_status(http_status_), is_temporary_status(http_status_) || code == "RequestTimeout"};
}

std::size_t Exchange::receive_content(char* data, std::size_t /*size*/, std::size_t count, void* self) {
    Exchange& exchange = *static_cast<Exchange*>(self);
    if (exchange.http_status_ >= 300) {
        const std::size_t room = longest_rejection - std::min(longest_rejection, exchange.rejection_.size());
        exchange.rejection_.append(data, std::min(room, count));
    } else if (exchange.request_.response_text != nullptr) {
        exchange.request_.response_text->append(data, count);
    } else if (exchange.request_.method == Method::get) {
        const std::span<std::byte> into = exchange.request_.destination;
        if (count > into.size() - exchange.received_) {
            exchange.content_overflowed_ = true;
            return 0;  // ends the transfer
        }
        std::memcpy(into.data() + exchange.received_, data, count);
    }
    exchange.received_ += exchange.http_status_ < 300 ? count : 0;
    return count;
}

std::size_t Exchange::receive_header(char* data, std::size_t /*size*/, std::size_t count, void* self) {
    Exchange& exchange = *static_cast<Exchange*>(self);
    const std::string_view line(data, count);
    if (line.starts_with("HTTP/")) {
        const std::size_t space = line.find(' ');
        if (space != std::string_view::npos) {
            std::from_chars(line.data() + space + 1, line.data() + line.size(), exchange.http_status_);
        }
        return count;
    }
    if (exchange.request_.method == Method::get && !exchange.server_.empty()) {
        return count;  // of a get, only the status is used
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
        return count;
    }
    const std::string_view name = line.substr(0, colon);
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    value = value.substr(0, value.find_last_not_of("\r\n") + 1);
    if (equals_ignoring_case(name, "etag")) {
        exchange.entity_tag_ = value;
    } else if (equals_ignoring_case(name, "content-length")) {
        std::from_chars(value.data(), value.data() + value.size(), exchange.content_length_);
    } else if (exchange.server_.empty() && equals_ignoring_case(name, "server")) {
        exchange.server_ = value;
    }
    return count;
}

std::size_t Exchange::send_content(char* data, std::size_t size, std::size_t count, void* self) {
    Exchange& exchange = *static_cast<Exchange*>(self);
    const std::span<const std::byte> body = exchange.request_.body;
    const std::size_t amount = std::min(size * count, body.size() - exchange.sent_);
    std::memcpy(data, body.data() + exchange.sent_, amount);
    exchange.sent_ += amount;
    return amount;
}

/// libcurl sends a content again when a kept connection turns out to be closed.
int Exchange::rewind_content(void* self, std::int64_t offset, int /*origin*/) {
    static_cast<Exchange*>(self)->sent_ = static_cast<std::size_t>(offset);
    return 0;
}

}  // namespace sonde::objects
