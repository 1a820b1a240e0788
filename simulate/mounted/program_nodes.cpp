// SPDX-License-Identifier: Apache-2.0
#include "mounted/program_nodes.hpp"

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace sonde::simulate {
namespace {

/// Number of stored threads. More are a sign of reused thread ids.
constexpr std::size_t max_stored_threads = 1U << 16U;

/// The process that a thread belongs to.
pid_t find_process(pid_t thread) {
    constexpr std::string_view tag = "Tgid:";
    std::ifstream status("/proc/" + std::to_string(thread) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(tag)) {
            return static_cast<pid_t>(std::strtol(line.c_str() + tag.size(), nullptr, 10));
        }
    }
    return thread;  // the thread has ended
}

}  // namespace

ProgramNodes::ProgramNodes(RealTimeMachine& machine, std::uint32_t nodes) : nodes_(nodes) {
    machine.call_machine([&](Machine& model) {
        for (std::uint32_t node = 0; node < nodes; ++node) {
            for (std::size_t i = 0; i < streams_per_node; ++i) {
                streams_.push_back(model.begin_stream(node));
            }
        }
    });
}

std::uint32_t ProgramNodes::get_client(pid_t thread) {
    if (nodes_ == 1) {
        return 0;
    }
    const std::lock_guard lock(mutex_);
    if (const auto entry = clients_.find(thread); entry != clients_.end()) {
        return entry->second;
    }
    if (clients_.size() >= max_stored_threads) {
        clients_.clear();
    }
    const auto [process, is_new] = clients_.try_emplace(find_process(thread), 0);
    if (is_new) {
        process->second = assigned_processes_++ % nodes_;
    }
    const std::uint32_t client = process->second;
    clients_[thread] = client;
    return client;
}

StreamId ProgramNodes::get_metadata_stream(pid_t thread) {
    return streams_[get_client(thread) * streams_per_node + static_cast<std::size_t>(thread) % streams_per_node];
}

}  // namespace sonde::simulate
