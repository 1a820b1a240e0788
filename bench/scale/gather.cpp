// SPDX-License-Identifier: Apache-2.0
// What it takes to bring the results of very many nodes together: the tree and the packing that the engine uses, with a
// stand-in for the messages. `sonde-bench-gather NODES TASKS` plays NODES nodes of TASKS tasks one after the other,
// then lets the root do its part in a process of its own, as it would with the messages that it gets, and prints one
// line of JSON.
#include "ranks/reduction_tree.hpp"
#include "results/summary.hpp"
#include "results/tables.hpp"
#include "results/totals.hpp"

#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

namespace {

using sonde::results::Totals;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A node after a write phase of ten seconds: latencies of three decades, slices of 64 intervals.
std::string leaf(int node, int tasks) {
    constexpr int operations = 400;
    constexpr std::int64_t second = 1'000'000'000;
    std::mt19937_64 random(static_cast<std::uint64_t>(node));
    std::lognormal_distribution<double> latency(13.0, 1.0);
    Totals totals;
    totals.slice_ns = second / 6;
    totals.sums_of_streams[0].slices.resize(64);
    for (int task = 0; task < tasks; ++task) {
        sonde::results::TaskRow row;
        row.task = node * tasks + task;
        row.node = node;
        row.bytes = random() % (1ULL << 33U);
        row.operations = operations;
        row.end_ns = row.transfer_end_ns = 9 * second + static_cast<std::int64_t>(random() % second);
        row.transfer_ns = row.end_ns - static_cast<std::int64_t>(random() % 1'000'000);
        row.user_ns = random() % second;
        row.system_ns = random() % second;
        totals.rows.push_back(row);
        totals.bytes[1] += row.bytes;
        totals.operations[1] += row.operations;
        totals.sums_of_streams[0].bytes += row.bytes;
        for (int i = 0; i < operations; ++i) {
            totals.latency_histograms[1].add(static_cast<std::uint64_t>(latency(random)));
        }
        for (auto& slice : totals.sums_of_streams[0].slices) {
            slice.bytes += row.bytes / 64;
            slice.active_streams += 1;
            ++slice
                  .stream_bytes[static_cast<std::uint32_t>(sonde::meters::Histogram::get_bucket_index(row.bytes / 64))];
        }
    }
    totals.parts_of_work[sonde::meters::part_transfer].add(0, 10 * second);
    return totals.pack();
}

std::string join(std::string a, const std::string& b) {
    Totals sum = Totals::unpack(a);
    sum.merge(Totals::unpack(b));
    return sum.pack();
}

std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// The root's part, alone: its own results, the messages from the folder, and the lines that it writes.
int as_root(const std::filesystem::path& folder, int nodes, int tasks) {
    const std::string local_part = leaf(0, tasks);
    const auto start = Clock::now();
    const auto take = [&](int node, std::string& text) {
        text = read(folder / std::to_string(node));
        return true;
    };
    const Totals all = Totals::unpack(sonde::ranks::reduce_in_tree(
        0, nodes, local_part, [](int, const std::string&) {}, take, join));
    const double joined_s = since(start);
    const sonde::results::PhaseFacts facts{.stopped_by = "volume",
                                           .stonewall_ns = 0,
                                           .hosts = std::vector<std::string>(static_cast<std::size_t>(nodes), "node"),
                                           .residency = -1,
                                           .clocks = {}};
    std::uint64_t record = 0;
    const auto count = [&record](const nlohmann::ordered_json& line) { record += line.dump().size() + 1; };
    count(sonde::results::make_phase_end_line(all, facts));
    count(sonde::results::make_series_line(all));
    count(sonde::results::make_node_line(all, facts));
    for (const auto& lines : {sonde::results::make_histogram_lines(all), sonde::results::make_task_lines(all, facts)}) {
        std::for_each(lines.begin(), lines.end(), count);
    }
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const double cpu_s = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    std::printf(
        "\"rows\": %zu, \"root_join_s\": %.3f, \"root_s\": %.3f, \"root_cpu_s\": %.3f, \"root_peak_mib\": %.1f, "
        "\"record_mib\": %.2f}\n",
        all.rows.size(), joined_s, since(start), cpu_s, static_cast<double>(used.ru_maxrss) / 1024,
        static_cast<double>(record) / (1U << 20U));
    return 0;
}

struct Load {
    int received = 0;
    std::uint64_t bytes = 0;  // sent and received
};

/// All nodes but the root, last first: whoever receives finds that the senders have spoken.
std::vector<Load> play(int nodes, int tasks, std::map<int, std::string>& to_root) {
    std::vector<Load> load(static_cast<std::size_t>(nodes));
    std::map<int, std::map<int, std::string>> waiting;  // receiver -> sender -> text
    for (int node = nodes - 1; node > 0; --node) {
        const auto give = [&](int to, const std::string& text) {
            load[static_cast<std::size_t>(node)].bytes += text.size();
            load[static_cast<std::size_t>(to)].bytes += text.size();
            ++load[static_cast<std::size_t>(to)].received;
            (to == 0 ? to_root[node] : waiting[to][node]) = text;
        };
        const auto take = [&](int from, std::string& text) {
            text = std::move(waiting[node][from]);
            return true;
        };
        sonde::ranks::reduce_in_tree(node, nodes, leaf(node, tasks), give, take, join);
        waiting.erase(node);
    }
    return load;
}

}  // namespace

int main(int count, char** arguments) {
    const int nodes = count > 1 ? std::atoi(arguments[1]) : 1000;
    const int tasks = count > 2 ? std::atoi(arguments[2]) : 100;
    if (nodes < 1 || tasks < 1) {
        std::fprintf(stderr, "usage: sonde-bench-gather NODES TASKS\n");
        return 2;
    }
    if (count > 3) {
        return as_root(arguments[3], nodes, tasks);
    }
    std::map<int, std::string> to_root;
    const std::vector<Load> load = play(nodes, tasks, to_root);
    int most = 0;
    std::uint64_t all = 0;
    for (const Load& part : load) {
        most = std::max(most, part.received);
        all += part.bytes;
    }
    std::string folder = (std::filesystem::temp_directory_path() / "sonde-gather-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) {
        std::perror("sonde-bench-gather");
        return 3;
    }
    std::uint64_t root_bytes = 0;
    for (const auto& [node, text] : to_root) {
        std::ofstream(folder + "/" + std::to_string(node), std::ios::binary) << text;
        root_bytes += text.size();
    }
    std::printf(
        "{\"nodes\": %d, \"tasks\": %d, \"leaf_bytes\": %zu, \"messages\": %d, \"max_received\": %d, "
        "\"mean_bytes_per_node\": %.0f, \"root_bytes\": %llu, ",
        nodes, nodes * tasks, leaf(1, tasks).size(), nodes - 1, most, static_cast<double>(all) / nodes,
        static_cast<unsigned long long>(root_bytes));
    std::fflush(stdout);
    const std::string command = "'" + std::filesystem::read_symlink("/proc/self/exe").string() + "' " +
                                std::to_string(nodes) + " " + std::to_string(tasks) + " '" + folder + "'";
    const int status = std::system(command.c_str());
    std::filesystem::remove_all(folder);
    return status == 0 ? 0 : 1;
}
