// SPDX-License-Identifier: Apache-2.0
// Direct calls on small machines, one at a time.
#pragma once

#include "small_site.hpp"

#include <doctest/doctest.h>
#include <utility>

namespace sonde::simulate {

/// The time of one call on a file of `size` bytes.
inline Time one_call(SystemModel site, const ModelOperation& requested, std::uint64_t size = 0) {
    CompletionTimes completions;
    Machine machine(std::move(site), {1, 0}, completions);
    ModelOperation operation = requested;
    operation.stream = machine.begin_stream(0);
    operation.file = machine.get_file("f");
    machine.resize_file(operation.file, size);
    machine.submit(0, operation);
    while (completions.times.empty()) {
        REQUIRE(machine.handle_next_event());
    }
    return completions.times.begin()->second;
}

/// A call that bypasses the cache of its client.
inline ModelOperation direct(ModelCallKind call, std::uint64_t offset, std::uint64_t length) {
    ModelOperation operation;
    operation.kind = call;
    operation.direct = true;
    operation.offset = offset;
    operation.length = length;
    return operation;
}

}  // namespace sonde::simulate
