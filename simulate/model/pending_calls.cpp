// SPDX-License-Identifier: Apache-2.0
#include "model/pending_calls.hpp"

#include <algorithm>

namespace sonde::simulate {

std::uint32_t PendingCalls::add(const ModelOperation& operation, Time call_time, Time cpu_time) {
    std::uint32_t call = 0;
    if (free_calls_.empty()) {
        call = static_cast<std::uint32_t>(calls_.size());
        calls_.emplace_back();
    } else {
        call = free_calls_.back();
        free_calls_.pop_back();
    }
    PendingCall& pending = calls_[call];
    pending = PendingCall{};
    pending.operation = operation;
    pending.call_time = call_time;
    pending.cpu_time = cpu_time;
    timeline_.begin_activity();
    return call;
}

/// Bytes that a call transfers: a read ends with the file.
std::uint64_t PendingCalls::transferred_bytes(const ModelOperation& operation) const {
    const std::uint64_t size = files_[operation.file].size;
    return operation.kind != ModelCallKind::read ? operation.length
                                                 : std::min(operation.length, size - std::min(size, operation.offset));
}

void PendingCalls::fail(std::uint32_t call, Time end, int error) {
    calls_[call].error = error;
    finish(call, end);
}

void PendingCalls::finish(std::uint32_t call, Time end) {
    const PendingCall& pending = calls_[call];
    monitoring_.nodes[clients_.stream(pending.operation.stream).client].add(
        pending.operation, pending.error == 0 ? transferred_bytes(pending.operation) : 0, end - pending.call_time);
    const CompletedOperation completed{pending.operation.tag, end, pending.cpu_time, pending.error};
    free_calls_.push_back(call);
    timeline_.end_activity();
    listener_.on_completion(completed);
}

}  // namespace sonde::simulate
