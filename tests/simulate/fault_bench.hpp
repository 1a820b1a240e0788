// SPDX-License-Identifier: Apache-2.0
// Streams of calls on small machines where the effect of a fault can be computed.
#pragma once

#include "small_site.hpp"

#include <doctest/doctest.h>
#include "kernel/random.hpp"

#include <algorithm>

namespace sonde::simulate {

/// Streams of sequential calls. Stream i has its own file on target i % targets.
struct FaultBench : Listener {
    Machine machine;
    std::vector<ModelOperation> next_operations;
    std::vector<std::uint64_t> remaining_calls;
    std::vector<Time> end_times;       ///< by stream: end of its last call
    std::vector<std::uint64_t> seeds;  ///< by stream: of random offsets; empty: the calls are sequential

    explicit FaultBench(const SystemModel& site) : machine(site, {1, 0}, *this) {}

    void add(ModelCallKind call, std::uint32_t client, std::uint64_t calls, std::uint64_t transfer = mib,
             bool direct = true, const std::string& name = {}) {
        const auto number = static_cast<std::uint32_t>(next_operations.size());
        ModelOperation operation;
        operation.kind = call;
        operation.direct = direct;
        operation.length = transfer;
        operation.stream = machine.begin_stream(client);
        operation.file = machine.get_file(name.empty() ? "f" + std::to_string(number) : name);
        operation.tag = number;
        const auto targets = static_cast<std::uint32_t>(machine.system().targets.size());
        if (machine.file_size(operation.file) == 0) {
            machine.set_layout(operation.file, {machine.get_layout(operation.file).size, 1, number % targets});
        }
        if (call == ModelCallKind::read) {
            machine.resize_file(operation.file, std::max(machine.file_size(operation.file), calls * transfer));
        }
        next_operations.push_back(operation);
        remaining_calls.push_back(calls);
        end_times.push_back(0);
    }
    /// Runs all remaining calls.
    void run() {
        for (ModelOperation& operation : next_operations) {
            if (remaining_calls[operation.tag] > 0) {
                machine.submit(machine.now(), operation);
            }
        }
        while (std::any_of(remaining_calls.begin(), remaining_calls.end(),
                           [](std::uint64_t calls) { return calls > 0; })) {
            REQUIRE(machine.handle_next_event());
        }
    }
    void run_again(std::uint64_t calls) {
        for (std::size_t i = 0; i < next_operations.size(); ++i) {
            next_operations[i].offset = 0;
            remaining_calls[i] = calls;
        }
        run();
    }
    Time last_end() const { return *std::max_element(end_times.begin(), end_times.end()); }
    const TargetCounters& target(std::size_t i) const { return machine.get_monitoring_data().targets[i]; }
    const std::vector<LogMessage>& messages() const { return machine.get_monitoring_data().messages; }
    std::uint64_t bytes_through(const std::string& part) const {
        for (const Machine::Flow& flow : machine.flows()) {
            if (flow.part == part) {
                return flow.written + flow.read;
            }
        }
        FAIL("no part " << part);
        return 0;
    }
    void begin(const char* fault) { machine.begin_fault(parse_fault(fault)); }
    void end(const char* fault) { machine.end_fault(parse_fault(fault)); }

    void on_completion(const CompletedOperation& completed) override {
        end_times[completed.tag] = completed.end;
        ModelOperation& operation = next_operations[completed.tag];
        operation.offset += operation.length;
        if (completed.tag < seeds.size()) {
            seeds[completed.tag] = mix_bits(seeds[completed.tag]);
            operation.offset =
                seeds[completed.tag] % (machine.file_size(operation.file) / operation.length) * operation.length;
        }
        if (--remaining_calls[completed.tag] > 0) {
            machine.submit(completed.end, operation);
        }
    }
    void on_alarm(Time, std::uint64_t) override {}
};

inline std::string rejection(const SystemModel& site, const char* fault) {
    FaultBench bench(site);
    try {
        bench.begin(fault);
    } catch (const SystemModelError& error) {
        return error.what();
    }
    return "accepted";
}

inline SystemModel add_server(SystemModel site) {
    ServerDescription server;
    server.id = "oss";
    site.servers.push_back(server);
    for (TargetDescription& target : site.targets) {
        target.server = static_cast<int>(site.servers.size()) - 1;
    }
    return site;
}

}  // namespace sonde::simulate
