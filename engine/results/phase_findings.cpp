// SPDX-License-Identifier: Apache-2.0
#include "results/phase_findings.hpp"

#include "plan/units.hpp"
#include "results/finding_list.hpp"
#include "results/task_findings.hpp"

#include <algorithm>
#include <cstdlib>

namespace sonde::results {
namespace {

using nlohmann::ordered_json;

void find_cache_effects(FindingList& findings, const Totals& totals, const PhaseCircumstances& circumstances) {
    const plan::Phase& phase = *circumstances.phase;
    if (!circumstances.stores_data) {
        return;
    }
    if (circumstances.memory_backed) {
        findings.add("memory_backed", "info",
                     "the target lives in memory: these are rates of memory copies, not of storage",
                     "name a directory on the storage under test", ordered_json::object());
        return;
    }
    if (phase.data.io.direct || phase.meta) {
        return;
    }
    const double allowed = phase.valid.max_residency.value_or(0.01);
    if (plan::reads(phase.op)) {
        if (circumstances.residency_known && circumstances.residency > allowed) {
            findings.add(
                "cache_suspect", "warning",
                format_number(
                    "%.0f %% of the data was in this node's page cache before the phase: not a storage number",
                    100 * circumstances.residency),
                "drop the cache before (treatment drop_page_cache), read with io.direct, or use more data than memory",
                {{"residency", circumstances.residency}, {"allowed", allowed}});
        } else if (!circumstances.residency_known) {
            findings.add("cache_unknown", "info",
                         "the page cache could not be asked: part of the data may have come from it",
                         "read with io.direct, or use more data than memory", ordered_json::object());
        }
    }
    std::uint64_t first_pass = 0;
    for (const TaskRow& row : totals.rows) {
        first_pass += phase.data.access.bytes_of(row.next_operation);
    }
    const std::uint64_t memory = circumstances.node_memory * static_cast<std::uint64_t>(circumstances.nodes);
    if (plan::reads(phase.op) && first_pass > 0 && totals.bytes[0] > first_pass + first_pass / 10 &&
        first_pass < memory) {
        findings.add("cache_suspect", "warning",
                     format_number(
                         "the pattern was repeated %.1f times, and after the first time the data came from page cache: "
                         "not a storage number",
                         static_cast<double>(totals.bytes[0] + totals.bytes[1]) / static_cast<double>(first_pass)),
                     "use more data than memory, a shorter stop.time, or read with io.direct",
                     {{"first_pass_bytes", first_pass}, {"read_bytes", totals.bytes[0]}, {"memory_bytes", memory}});
    }
    const bool durable = phase.data.io.fsync != plan::Fsync::none || phase.data.io.sync_flag != plan::SyncFlag::none;
    const std::uint64_t written = totals.bytes[1];
    // For any amount of data, because memory may hold most of it at the end of the phase. The lab uses the same rule.
    if (written > 0 && !durable) {
        findings.add("cache_suspect", "warning",
                     "the data was written without fsync: it need not have reached storage when the clock stopped",
                     "set io.fsync = \"end\" (or end_timed_separately), or io.direct",
                     {{"written_bytes", written}, {"memory_bytes", memory}});
    }
}

void find_short_duration(FindingList& findings, const Totals& totals, const PhaseCircumstances& circumstances,
                         const PhaseFacts& facts) {
    const double seconds = compute_elapsed(totals);
    const double wanted =
        circumstances.phase->valid.min_time ? static_cast<double>(*circumstances.phase->valid.min_time) / 1e9 : 1.0;
    if (seconds < wanted) {
        findings.add("too_short", circumstances.phase->valid.min_time ? "warning" : "info",
                     format_number("the phase took %.3f s", seconds) +
                         format_number(", less than %.3g s: start and end weigh in the rate", wanted),
                     "give it more volume, or stop.time", {{"elapsed_s", seconds}, {"wanted_s", wanted}});
    }
    const std::uint64_t done = totals.operations[0] + totals.operations[1] + totals.file_operations;
    // `stopped_by` already reports the stonewall
    if (totals.planned_operations > done && facts.stopped_by != "time" && facts.stopped_by != "stonewall") {
        findings.add("coverage", "info",
                     format_number("%.1f %% of the planned operations were done",
                                   100.0 * static_cast<double>(done) / static_cast<double>(totals.planned_operations)) +
                         " (stopped by " + facts.stopped_by + ")",
                     "rates use what was done; allow more time for the whole volume",
                     {{"done_ops", done}, {"planned_ops", totals.planned_operations}});
    }
}

/// Alignment: the error of the worst node. Drift: the amount beyond the error of the measurement.
void find_node_clock_errors(FindingList& findings, const PhaseFacts& facts, double seconds) {
    const auto in_s = [](std::int64_t ns) { return static_cast<double>(ns) / 1e9; };
    const NodeClock* worst = nullptr;
    const NodeClock* farthest = nullptr;
    const auto drift_beyond_error = [](const NodeClock& clock) {
        return std::abs(clock.drift_ns) - clock.drift_error_ns;
    };
    for (const NodeClock& clock : facts.clocks) {
        worst = worst == nullptr || clock.error_ns > worst->error_ns ? &clock : worst;
        farthest = farthest == nullptr || drift_beyond_error(clock) > drift_beyond_error(*farthest) ? &clock : farthest;
    }
    if (worst == nullptr || seconds <= 0) {
        return;
    }
    if (in_s(worst->error_ns) > 0.01 * seconds) {
        findings.add(
            "clock_alignment", "warning",
            "the clock of " + facts.find_node_name(worst->node) +
                format_number(" is aligned to %.3g s only, more than 1 %% of the phase", in_s(worst->error_ns)),
            "make the phase longer",
            {{"error_s", in_s(worst->error_ns)}, {"elapsed_s", seconds}, {"node", worst->node}});
    }
    if (in_s(drift_beyond_error(*farthest)) > 0.01 * seconds) {
        findings.add(
            "clock_drift", "invalid",
            "the clock of " + facts.find_node_name(farthest->node) +
                format_number(" moved by %.3g s against the root's during the phase", in_s(farthest->drift_ns)),
            "look at the time service of that node",
            {{"moved_s", in_s(farthest->drift_ns)}, {"elapsed_s", seconds}, {"node", farthest->node}});
    }
}

void find_clock_error(FindingList& findings, const Totals& totals, const PhaseCircumstances& circumstances,
                      const PhaseFacts& facts) {
    const double seconds = compute_elapsed(totals);
    const double drift = static_cast<double>(std::abs(circumstances.clock_drift_ns)) / 1e9;
    if (seconds > 0.01 && drift > 1e-3 * seconds) {
        findings.add("clock", "invalid",
                     format_number("the time-stamp counter and CLOCK_MONOTONIC differ by %.3g s over the phase", drift),
                     "set SONDE_CLOCK=monotonic and report the machine", {{"drift_s", drift}, {"elapsed_s", seconds}});
    }
    find_node_clock_errors(findings, facts, seconds);
}

/// Direct transfers that the kernel splits before the device sees them: the device serves smaller requests than
/// planned.
void find_split_requests(FindingList& findings, const Totals& totals, const PhaseCircumstances& circumstances) {
    const plan::Data& data = circumstances.phase->data;
    const std::uint64_t maximum = circumstances.maximum_request;
    if (!circumstances.stores_data || !data.io.direct || maximum == 0 || data.access.transfer <= maximum ||
        totals.operations[0] + totals.operations[1] == 0) {
        return;
    }
    const std::uint64_t requests = (data.access.transfer + maximum - 1) / maximum;
    findings.add(
        "requests_split", "info",
        "the kernel splits each transfer of " + plan::format_bytes(data.access.transfer) + " into at least " +
            std::to_string(requests) + " requests: the device takes " + plan::format_bytes(maximum) + " at most",
        "raise queue/max_sectors_kb of the device up to max_hw_sectors_kb to send it larger requests",
        {{"transfer_bytes", data.access.transfer}, {"maximum_request_bytes", maximum}, {"requests", requests}});
}

void find_data_problems(FindingList& findings, const Totals& totals, const PhaseCircumstances& circumstances) {
    const plan::Payload& payload = circumstances.phase->data.payload;
    if (circumstances.file_bytes > 0 &&
        static_cast<double>(circumstances.disk_bytes) < 0.9 * static_cast<double>(circumstances.file_bytes) &&
        payload.compressible <= 0 && payload.duplicates <= 0 && payload.kind != plan::PayloadKind::zero) {
        findings.add(
            "fewer_blocks", "warning",
            format_number(
                "only %.0f %% of the written bytes occupy blocks: the file system compresses, deduplicates "
                "or has not allocated yet",
                100.0 * static_cast<double>(circumstances.disk_bytes) / static_cast<double>(circumstances.file_bytes)),
            "compare with payload.kind = \"random\"",
            {{"disk_bytes", circumstances.disk_bytes}, {"file_bytes", circumstances.file_bytes}});
    }
    if (totals.short_operations > 0) {
        findings.add("short_operations", "info",
                     std::to_string(totals.short_operations) + " calls moved less than asked and were continued",
                     "latencies of these operations include the continuation", {{"count", totals.short_operations}});
    }
    if (totals.retries > 0) {
        findings.add("retries", "warning",
                     std::to_string(totals.retries) + " requests failed for a temporary reason and were sent again",
                     "latencies and rates include the failed tries and the pauses before the next; the service was "
                     "overloaded or its connections broke",
                     {{"count", totals.retries}});
    }
    if (circumstances.verification_requested && totals.checked_bytes < totals.bytes[0]) {
        findings.add(
            "not_verified", "warning",
            format_number(
                "%.0f %% of the data was not verified: which version of each block is right cannot be known "
                "after the phases before",
                100.0 - 100.0 * static_cast<double>(totals.checked_bytes) / static_cast<double>(totals.bytes[0])),
            "verify before mixed, duplex or differently laid out writes",
            {{"checked_bytes", totals.checked_bytes}, {"read_bytes", totals.bytes[0]}});
    }
    if (circumstances.hides_write_errors && totals.bytes[1] > 0) {
        findings.add("write_errors_unknown", "warning",
                     "whether every write succeeded is not known: PnetCDF over ompio of Open MPI reports success when "
                     "there is no space left",
                     "verify the data, or set OMPI_MCA_io=^ompio", ordered_json::object());
    }
    if (circumstances.phase->data.io.queue_depth > 1 && totals.checked_bytes > 0) {
        findings.add("verify_disturbs", "info",
                     "comparing while other operations are in flight makes their latencies uncertain",
                     "use verify = \"readback\" for exact latencies", ordered_json::object());
    }
}

/// Emulated accelerators that computed nearly all the time: their demand was the rate.
void find_accelerator_limit(FindingList& findings, const Totals& totals) {
    const double utilization =
        totals.training.rated_accelerators > 0
            ? totals.training.utilization_sum / static_cast<double>(totals.training.rated_accelerators)
            : 0;
    if (utilization >= 0.95) {
        findings.add("rate_limited", "info",
                     format_number("the accelerators computed %.1f %% of the time and set the rate: it says nothing "
                                   "about what storage can do",
                                   100 * utilization),
                     "sweep the number of tasks to find how many accelerators storage feeds",
                     {{"utilization", utilization}});
    }
}

/// Which of the limit and storage set the rate. Without a limit, nothing.
void find_rate_limit(FindingList& findings, const Totals& totals, const PhaseCircumstances& circumstances) {
    const plan::Io& io = circumstances.phase->data.io;
    double bytes = 0;
    double operations = 0;
    double busy_s = 0;
    for (const TaskRow& row : totals.rows) {
        bytes += static_cast<double>(row.bytes);
        operations += static_cast<double>(row.operations);
        busy_s += seconds(row.transfer_ns);
    }
    if (circumstances.phase->meta || !io.is_limited() || busy_s <= 0) {
        return;
    }
    const double ratio = std::max(io.rate_limit ? bytes / busy_s / *io.rate_limit : 0,
                                  io.iops_limit ? operations / busy_s / *io.iops_limit : 0);
    ordered_json evidence{{"fraction_of_limit", ratio}};
    if (ratio >= 0.95) {
        findings.add("rate_limited", "info",
                     "io.rate_limit or io.iops_limit set the rate: it says nothing about what storage can do",
                     "read the latencies, or remove the limit to measure the rate", std::move(evidence));
        return;
    }
    findings.add("limit_not_reached", "warning",
                 format_number("storage served %.0f %% of the limit: operations waited for earlier ones, and latencies "
                               "include the time since each was due",
                               100 * ratio),
                 "use more tasks with a lower limit each, or a limit that storage can serve", std::move(evidence));
}

}  // namespace

std::vector<ordered_json> find_phase_findings(const Totals& totals, const PhaseFacts& facts,
                                              const PhaseCircumstances& circumstances) {
    FindingList findings(circumstances.phase->id);
    find_cache_effects(findings, totals, circumstances);
    find_short_duration(findings, totals, circumstances, facts);
    find_clock_error(findings, totals, circumstances, facts);
    find_slow_tasks(findings, totals, circumstances, facts);
    find_split_requests(findings, totals, circumstances);
    find_data_problems(findings, totals, circumstances);
    find_rate_limit(findings, totals, circumstances);
    find_accelerator_limit(findings, totals);
    return findings.to_sorted_list();
}

}  // namespace sonde::results
