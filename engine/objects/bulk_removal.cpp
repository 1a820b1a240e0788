// SPDX-License-Identifier: Apache-2.0
#include "objects/bulk_removal.hpp"

#include "objects/client.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace sonde::objects {

BulkRemoval remove_objects(const StoreSettings& settings, const std::vector<std::string>& keys) {
    constexpr std::size_t max_threads = 16;
    constexpr std::size_t keys_per_thread = 16;
    load_curl();  // throws here instead of in a thread
    BulkRemoval result;
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    const auto work = [&](std::size_t endpoint) {
        StoreClient client(settings, endpoint);
        for (std::size_t i = next++; i < keys.size(); i = next++) {
            const int failed = client.remove(keys[i]);
            const std::lock_guard lock(mutex);
            if (failed == 0) {
                ++result.removed;
            } else {
                result.failures.push_back(keys[i] + ": " + client.failure());
            }
        }
    };
    std::vector<std::thread> threads;
    const std::size_t count = std::min(max_threads, keys.size() / keys_per_thread);
    for (std::size_t i = 1; i < count; ++i) {
        threads.emplace_back(work, i);
    }
    work(0);
    for (std::thread& thread : threads) {
        thread.join();
    }
    return result;
}

}  // namespace sonde::objects
