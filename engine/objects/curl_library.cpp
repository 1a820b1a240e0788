// SPDX-License-Identifier: Apache-2.0
#include "objects/curl_library.hpp"

#include <dlfcn.h>
#include <malloc.h>
#include <stdexcept>

namespace sonde::objects {
namespace {

/// The beginning of curl_version_info_data.
struct CurlVersion {
    int age;
    const char* text;
    unsigned number;
};

constexpr unsigned first_signing_version = 0x075800;  // 7.88: signs the hash of the content as S3 requires it
constexpr long everything = 3;                        // CURL_GLOBAL_ALL

template <class Function>
bool find_symbol(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function != nullptr;
}

CurlLibrary open_library() {
    void* library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        throw std::runtime_error("libcurl.so.4 cannot be loaded: install libcurl 7.88 or later (libcurl4 or libcurl)");
    }
    CurlLibrary curl;
    int (*global_init)(long) = nullptr;
    const CurlVersion* (*version_info)(int) = nullptr;
    const bool is_complete = find_symbol(library, "curl_global_init", global_init) &&
                             find_symbol(library, "curl_version_info", version_info) &&
                             find_symbol(library, "curl_easy_init", curl.easy_init) &&
                             find_symbol(library, "curl_easy_cleanup", curl.easy_cleanup) &&
                             find_symbol(library, "curl_easy_setopt", curl.easy_setopt) &&
                             find_symbol(library, "curl_easy_getinfo", curl.easy_getinfo) &&
                             find_symbol(library, "curl_easy_perform", curl.easy_perform) &&
                             find_symbol(library, "curl_easy_strerror", curl.easy_strerror) &&
                             find_symbol(library, "curl_multi_init", curl.multi_init) &&
                             find_symbol(library, "curl_multi_cleanup", curl.multi_cleanup) &&
                             find_symbol(library, "curl_multi_add_handle", curl.multi_add_handle) &&
                             find_symbol(library, "curl_multi_remove_handle", curl.multi_remove_handle) &&
                             find_symbol(library, "curl_multi_perform", curl.multi_perform) &&
                             find_symbol(library, "curl_multi_poll", curl.multi_poll) &&
                             find_symbol(library, "curl_multi_info_read", curl.multi_info_read) &&
                             find_symbol(library, "curl_slist_append", curl.list_append) &&
                             find_symbol(library, "curl_slist_free_all", curl.list_free);
    const CurlVersion* version = version_info == nullptr ? nullptr : version_info(0);
    if (!is_complete || version == nullptr || version->number < first_signing_version) {
        const std::string name = version == nullptr ? "libcurl.so.4" : "libcurl " + std::string(version->text);
        dlclose(library);
        throw std::runtime_error(name + " cannot sign requests of S3: install libcurl 7.88 or later");
    }
    curl.version = version->text;
    if (global_init(everything) != curl_ok) {
        throw std::runtime_error("libcurl " + curl.version + " cannot be initialized");
    }
    return curl;
}

}  // namespace

const CurlLibrary& load_curl() {
    static const CurlLibrary library = [] {
        // libcurl allocates its buffers anew for each request. glibc must keep them: to return them to the kernel each
        // time costs as much processor time as the request itself.
        ::mallopt(M_MMAP_THRESHOLD, 32 << 20U);
        ::mallopt(M_TRIM_THRESHOLD, 64 << 20U);
        return open_library();
    }();
    return library;
}

std::string explain_missing_curl() {
    try {
        load_curl();
        return {};
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

}  // namespace sonde::objects
