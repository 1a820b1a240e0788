// SPDX-License-Identifier: Apache-2.0
// Streams of calls on machines small enough that the truth of a fault is arithmetic.
#pragma once

#include "small_site.hpp"

#include <doctest/doctest.h>
#include <algorithm>

namespace sonde::simulate {

/// Streams that call one after the other, each on a file of its own that lies on target number (stream % targets).
struct Bench : Listener {
    Machine machine;
    std::vector<Operation> next;
    std::vector<std::uint64_t> left;
    std::vector<Time> ended;  ///< by stream: of its last call

    explicit Bench(const SiteModel& site) : machine(site, {1, 0}, *this) {}

    void add(Call call, std::uint32_t client, std::uint64_t calls, std::uint64_t transfer = mib, bool direct = true,
             const std::string& name = {}) {
        const auto number = static_cast<std::uint32_t>(next.size());
        Operation operation;
        operation.call = call;
        operation.direct = direct;
        operation.length = transfer;
        operation.stream = machine.stream(client);
        operation.file = machine.file(name.empty() ? "f" + std::to_string(number) : name);
        operation.tag = number;
        const auto targets = static_cast<std::uint32_t>(machine.site().targets.size());
        if (machine.size(operation.file) == 0) {
            machine.set_layout(operation.file, {machine.layout(operation.file).size, 1, number % targets});
        }
        if (call == Call::read) {
            machine.resize(operation.file, std::max(machine.size(operation.file), calls * transfer));
        }
        next.push_back(operation);
        left.push_back(calls);
        ended.push_back(0);
    }
    /// Until all calls are done; their number of streams may be given more of by setting `left` again.
    void run() {
        for (Operation& operation : next) {
            if (left[operation.tag] > 0) {
                machine.submit(machine.now(), operation);
            }
        }
        while (std::any_of(left.begin(), left.end(), [](std::uint64_t calls) { return calls > 0; })) {
            REQUIRE(machine.step());
        }
    }
    void again(std::uint64_t calls) {
        for (std::size_t i = 0; i < next.size(); ++i) {
            next[i].offset = 0;
            left[i] = calls;
        }
        run();
    }
    Time last() const { return *std::max_element(ended.begin(), ended.end()); }
    const TargetTrace& target(std::size_t i) const { return machine.traces().targets[i]; }
    const std::vector<Message>& messages() const { return machine.traces().messages; }
    std::uint64_t through(const std::string& part) const {
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

    void done(const Done& what) override {
        ended[what.tag] = what.at;
        Operation& operation = next[what.tag];
        operation.offset += operation.length;
        if (--left[what.tag] > 0) {
            machine.submit(what.at, operation);
        }
    }
    void woken(Time, std::uint64_t) override {}
};

inline std::string refused(const SiteModel& site, const char* fault) {
    Bench bench(site);
    try {
        bench.begin(fault);
    } catch (const SiteError& error) {
        return error.what();
    }
    return "accepted";
}

inline SiteModel with_server(SiteModel site) {
    ServerSite server;
    server.id = "oss";
    site.servers.push_back(server);
    for (TargetSite& target : site.targets) {
        target.server = static_cast<int>(site.servers.size()) - 1;
    }
    return site;
}

}  // namespace sonde::simulate
