// SPDX-License-Identifier: Apache-2.0
#include "mounted/callers.hpp"

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace sonde::simulate {
namespace {

/// Threads that are remembered; more are a sign of numbers that were given out again.
constexpr std::size_t most_remembered = 1U << 16U;

/// The process that a thread belongs to.
pid_t process_of(pid_t thread) {
    constexpr std::string_view tag = "Tgid:";
    std::ifstream status("/proc/" + std::to_string(thread) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(tag)) {
            return static_cast<pid_t>(std::strtol(line.c_str() + tag.size(), nullptr, 10));
        }
    }
    return thread;  // it has ended meanwhile
}

}  // namespace

Callers::Callers(Pace& pace, std::uint32_t nodes) : nodes_(nodes) {
    pace.with([&](Machine& machine) {
        for (std::uint32_t node = 0; node < nodes; ++node) {
            for (std::size_t i = 0; i < streams_each; ++i) {
                streams_.push_back(machine.stream(node));
            }
        }
    });
}

std::uint32_t Callers::client_of(pid_t thread) {
    if (nodes_ == 1) {
        return 0;
    }
    const std::lock_guard lock(mutex_);
    if (const auto known = clients_.find(thread); known != clients_.end()) {
        return known->second;
    }
    if (clients_.size() >= most_remembered) {
        clients_.clear();
    }
    const auto [of_process, fresh] = clients_.try_emplace(process_of(thread), 0);
    if (fresh) {
        of_process->second = dealt_++ % nodes_;
    }
    const std::uint32_t client = of_process->second;
    clients_[thread] = client;
    return client;
}

StreamId Callers::names_of(pid_t thread) {
    return streams_[client_of(thread) * streams_each + static_cast<std::size_t>(thread) % streams_each];
}

}  // namespace sonde::simulate
