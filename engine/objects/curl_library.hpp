// SPDX-License-Identifier: Apache-2.0
// libcurl, loaded at run time: the engine builds and runs where it is not installed. The numbers are those of curl.h,
// which libcurl keeps for all releases of libcurl.so.4.
#pragma once

#include <string>

namespace sonde::objects {

/// Options of curl_easy_setopt().
enum class CurlOption : int {
    low_speed_limit = 19,
    low_speed_time = 20,
    no_body = 44,
    upload = 46,
    post = 47,
    http_get = 80,
    http_version = 84,
    receive_buffer = 98,
    no_signal = 99,
    connect_timeout_ms = 156,
    upload_buffer = 280,
    write_data = 10001,
    url = 10002,
    user_and_password = 10005,
    range = 10007,
    read_data = 10009,
    error_text = 10010,
    post_fields = 10015,
    headers = 10023,
    header_data = 10029,
    custom_request = 10036,
    ca_file = 10065,
    user_data = 10103,
    seek_data = 10168,
    sign_v4 = 10305,
    protocols = 10318,
    write_function = 20011,
    read_function = 20012,
    header_function = 20079,
    seek_function = 20167,
    upload_size = 30115,
    post_size = 30120,
};

constexpr int curl_ok = 0;
constexpr int curl_info_status = 0x200002;     ///< CURLINFO_RESPONSE_CODE: long
constexpr int curl_info_user_data = 0x100015;  ///< CURLINFO_PRIVATE: char*
constexpr int curl_message_done = 1;           ///< CURLMSG_DONE

/// CURLMsg.
struct CurlMessage {
    int kind;
    void* easy;
    union {
        void* pointer;
        int code;
    } data;
};

struct CurlList;  ///< curl_slist

/// The functions of libcurl that are called.
struct CurlLibrary {
    void* (*easy_init)() = nullptr;
    void (*easy_cleanup)(void*) = nullptr;
    int (*easy_setopt)(void*, int, ...) = nullptr;
    int (*easy_getinfo)(void*, int, ...) = nullptr;
    int (*easy_perform)(void*) = nullptr;
    const char* (*easy_strerror)(int) = nullptr;
    void* (*multi_init)() = nullptr;
    int (*multi_cleanup)(void*) = nullptr;
    int (*multi_add_handle)(void*, void*) = nullptr;
    int (*multi_remove_handle)(void*, void*) = nullptr;
    int (*multi_perform)(void*, int*) = nullptr;
    int (*multi_poll)(void*, void*, unsigned, int, int*) = nullptr;
    CurlMessage* (*multi_info_read)(void*, int*) = nullptr;
    CurlList* (*list_append)(CurlList*, const char*) = nullptr;
    void (*list_free)(CurlList*) = nullptr;
    std::string version;  ///< "7.88.1"

    template <class T>
    void set(void* easy, CurlOption option, T value) const {
        easy_setopt(easy, static_cast<int>(option), value);
    }
};

/// Loads libcurl once for the process. Throws std::runtime_error with one sentence where it is missing or too old to
/// sign requests of S3.
const CurlLibrary& load_curl();
/// Why load_curl() fails; empty when it does not.
std::string explain_missing_curl();

}  // namespace sonde::objects
