// SPDX-License-Identifier: Apache-2.0
// The barest loop over libcurl that puts and gets objects of an S3 service: one connection, signed requests, ranged
// gets into a buffer, no clock and no meter inside a pass. bench/s3.py compiles and starts it. s3_loop URL TRANSFER
// OBJECTS DATA SECONDS: puts the objects URL00000000, URL00000001, … once, then puts and gets them in passes for so
// many seconds each; prints {"rewrite": {"rate": operations per second, "cpu_ns": of an operation}, "read": …}. DATA:
// bytes of different data, a power of two. Keys: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// One sentence for the user; exit code 3.
struct LoopError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Task {
    std::string url;
    std::size_t transfer;  ///< bytes of an object
    std::size_t objects;
    std::size_t data;  ///< bytes
    double seconds;
};

/// What a request still sends or has received.
struct Content {
    char* bytes;
    std::size_t room;
};

std::size_t receive(char* data, std::size_t /*size*/, std::size_t count, void* content) {
    auto& into = *static_cast<Content*>(content);
    if (count > into.room) {
        return 0;  // ends the transfer with an error
    }
    std::memcpy(into.bytes, data, count);
    into.bytes += count;
    into.room -= count;
    return count;
}

std::size_t send(char* data, std::size_t size, std::size_t count, void* content) {
    auto& from = *static_cast<Content*>(content);
    const std::size_t amount = std::min(size * count, from.room);
    std::memcpy(data, from.bytes, amount);
    from.bytes += amount;
    from.room -= amount;
    return amount;
}

/// A connection with the options that the engine sets too, as far as they change what is sent or how fast.
class Connection {
 public:
    explicit Connection(const Task& task) : easy_(curl_easy_init()), transfer_(task.transfer) {
        const char* const id = std::getenv("AWS_ACCESS_KEY_ID");
        const char* const secret = std::getenv("AWS_SECRET_ACCESS_KEY");
        if (easy_ == nullptr || id == nullptr || secret == nullptr) {
            throw LoopError("no memory for a request, or no keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
        }
        for (const char* header :
             {"Expect:", "Content-Type: application/octet-stream", "x-amz-content-sha256: UNSIGNED-PAYLOAD"}) {
            headers_ = curl_slist_append(headers_, header);
        }
        range_ = "0-" + std::to_string(task.transfer - 1);
        curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
        curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
        curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE, 512L << 10U);
        curl_easy_setopt(easy_, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10U);
        curl_easy_setopt(easy_, CURLOPT_AWS_SIGV4, "aws:amz:us-east-1:s3");
        curl_easy_setopt(easy_, CURLOPT_USERPWD, (std::string(id) + ":" + secret).c_str());
        curl_easy_setopt(easy_, CURLOPT_FAILONERROR, 1L);
        curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, receive);
        curl_easy_setopt(easy_, CURLOPT_WRITEDATA, &content_);
        curl_easy_setopt(easy_, CURLOPT_READFUNCTION, send);
        curl_easy_setopt(easy_, CURLOPT_READDATA, &content_);
    }
    ~Connection() {
        curl_easy_cleanup(easy_);
        curl_slist_free_all(headers_);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    template <bool put>
    void prepare() {
        curl_easy_setopt(easy_, CURLOPT_RANGE, put ? nullptr : range_.c_str());
        curl_easy_setopt(easy_, put ? CURLOPT_UPLOAD : CURLOPT_HTTPGET, 1L);
        if (put) {
            curl_easy_setopt(easy_, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(transfer_));
        }
    }

    template <bool put>
    void request(const std::string& url, char* bytes) {
        content_ = {bytes, transfer_};
        curl_easy_setopt(easy_, CURLOPT_URL, url.c_str());
        const CURLcode code = curl_easy_perform(easy_);
        if (code != CURLE_OK || content_.room != 0) {
            throw LoopError(url + ": " + (code == CURLE_OK ? "the object is shorter" : curl_easy_strerror(code)));
        }
    }

 private:
    CURL* easy_;
    std::size_t transfer_;
    curl_slist* headers_ = nullptr;
    std::string range_;
    Content content_{};
};

/// The loop under comparison. A template, so that nothing is decided inside.
template <bool put>
[[gnu::noinline]] double pass(const Task& task, Connection& connection, const std::vector<std::string>& urls,
                              char* buffer) {
    std::size_t offset = 0;
    for (const std::string& url : urls) {
        connection.request<put>(url, put ? buffer + (offset & (task.data - 1)) : buffer);
        offset += task.transfer;
    }
    return static_cast<double>(urls.size());
}

double read_thread_cpu() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Passes for the time of the task. Returns the result as JSON.
template <bool put>
std::string run_passes(const Task& task, Connection& connection, const std::vector<std::string>& urls, char* buffer) {
    using Clock = std::chrono::steady_clock;
    connection.prepare<put>();
    const Clock::time_point begin = Clock::now();
    const double cpu_begin = read_thread_cpu();
    double seconds = 0, operations = 0;
    do {
        operations += pass<put>(task, connection, urls, buffer);
        seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    } while (seconds < task.seconds);
    const double cpu_ns = (read_thread_cpu() - cpu_begin) / operations * 1e9;
    return "{\"rate\": " + std::to_string(operations / seconds) + ", \"cpu_ns\": " + std::to_string(cpu_ns) + "}";
}

/// Page-aligned memory with random bytes.
std::shared_ptr<char> make_buffer(std::size_t bytes) {
    constexpr std::size_t page = 4096;
    auto* const memory = static_cast<char*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
    if (memory == nullptr) {
        throw LoopError("no memory for the data");
    }
    std::mt19937_64 random(1);
    for (std::size_t position = 0; position + sizeof(std::uint64_t) <= bytes; position += sizeof(std::uint64_t)) {
        const std::uint64_t value = random();
        std::memcpy(memory + position, &value, sizeof value);
    }
    return {memory, std::free};
}

void run(const Task& task) {
    const std::shared_ptr<char> buffer = make_buffer(task.data + task.transfer);
    std::vector<std::string> urls;
    for (std::size_t object = 0; object < task.objects; ++object) {
        const std::string number = std::to_string(object);
        urls.push_back(task.url + std::string(8 - std::min<std::size_t>(8, number.size()), '0') + number);
    }
    Connection connection(task);
    connection.prepare<true>();
    pass<true>(task, connection, urls, buffer.get());
    const std::string rewrite = run_passes<true>(task, connection, urls, buffer.get());
    const std::string read = run_passes<false>(task, connection, urls, buffer.get());
    std::printf("{\"rewrite\": %s, \"read\": %s}\n", rewrite.c_str(), read.c_str());
}

}  // namespace

int main(int count, char** arguments) {
    int result = 0;
    try {
        if (count != 6) {
            throw LoopError("use: s3_loop URL TRANSFER OBJECTS DATA SECONDS");
        }
        run({arguments[1], std::strtoull(arguments[2], nullptr, 10), std::strtoull(arguments[3], nullptr, 10),
             std::strtoull(arguments[4], nullptr, 10), std::strtod(arguments[5], nullptr)});
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "s3_loop: %s.\n", failure.what());
        result = 3;
    }
    return result;
}
