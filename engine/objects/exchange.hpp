// SPDX-License-Identifier: Apache-2.0
// One request to an object store and its response, on a connection that is kept. Signed by libcurl (AWS SigV4).
#pragma once

#include "objects/curl_library.hpp"
#include "objects/store_settings.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sonde::objects {

enum class Method { get, head, put, remove, post };

/// A request. Everything that it points to must stay valid until the response has arrived.
struct StoreRequest {
    Method method = Method::get;
    std::string_view key;                  ///< of the object; empty: the bucket
    std::string_view query;                ///< encoded, names in ascending order ("list-type=2&prefix=a"); empty: none
    std::span<const std::byte> body;       ///< put and post
    std::span<std::byte> destination;      ///< get: the content goes here
    std::string* response_text = nullptr;  ///< get and post: the content goes here instead
    std::int64_t first_byte = -1;  ///< get: bytes from here on, as many as `destination` holds; < 0: the whole object
    bool exclusive = false;        ///< put and post: fails with EEXIST when the object is there
};

/// Result of a request.
struct RequestResult {
    std::int64_t value = 0;     ///< bytes of the content, or -errno
    bool is_temporary = false;  ///< the same request may succeed later: connection lost, server busy
};

class Exchange {
 public:
    /// Throws std::runtime_error when libcurl cannot be used. `settings` must outlive it.
    Exchange(const StoreSettings& settings, std::size_t endpoint);
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    /// Prepares a request for curl_easy_perform() or a multi handle.
    void prepare(const StoreRequest& call);
    /// Evaluates the response after libcurl has finished with `code`.
    RequestResult evaluate_response(int code);
    /// prepare(), one try, evaluate_response().
    RequestResult perform(const StoreRequest& call);

    void* curl_handle() const { return curl_handle_; }
    /// Of the last response.
    const std::string& entity_tag() const { return entity_tag_; }
    std::uint64_t content_length() const { return content_length_; }
    const std::string& server() const { return server_; }
    /// Why the last request failed: "503 SlowDown: Please reduce your request rate".
    const std::string& failure() const { return failure_; }
    void set_user_data(void* data) const { curl_.set(curl_handle_, CurlOption::user_data, data); }

 private:
    static std::size_t receive_content(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t receive_header(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t send_content(char* data, std::size_t size, std::size_t count, void* self);
    static int rewind_content(void* self, std::int64_t offset, int origin);

    void set_method(Method method);
    void set_headers(CurlList* headers);
    /// The range of the next get: `bytes` from `first` on; all where `first` is negative.
    void set_range(std::int64_t first, std::size_t bytes);
    void set_constant_options(const StoreSettings& settings);
    RequestResult evaluate_failed_transfer(int code);
    RequestResult evaluate_rejected_request();

    const CurlLibrary& curl_;
    void* curl_handle_ = nullptr;
    CurlList* headers_ = nullptr;
    CurlList* exclusive_headers_ = nullptr;
    CurlList* used_headers_ = nullptr;  ///< those that libcurl has: one of the two
    std::string bucket_url_;            ///< URL of the bucket
    std::string url_;
    StoreRequest request_;
    Method method_ = Method::get;
    std::int64_t range_first_ = -1;  ///< of the range that libcurl has
    std::size_t range_bytes_ = 0;
    std::size_t sent_ = 0, received_ = 0;
    bool content_overflowed_ = false;
    int http_status_ = 0;
    std::uint64_t content_length_ = 0;
    std::string entity_tag_, server_, rejection_, failure_;
    std::array<char, 256> curl_text_{};
};

/// The first `<name>…</name>` of an XML text, with its five entities decoded; empty when there is none.
std::string find_element(std::string_view xml, std::string_view name);

}  // namespace sonde::objects
