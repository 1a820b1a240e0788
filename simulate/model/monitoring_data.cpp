// SPDX-License-Identifier: Apache-2.0
#include "model/monitoring_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace sonde::simulate {
namespace {

/// printf into a string of less than 512 bytes.
template <class... Args>
std::string format_text(const char* format, Args... args) {
    char text[512];
    std::snprintf(text, sizeof text, format, args...);
    return text;
}

using Long = unsigned long long;

void add_line(std::string& text, const char* name, const StatsCounter& tally, const char* unit) {
    if (tally.samples > 0) {  // Lustre omits lines without samples
        text += format_text("%-25s %llu samples [%s] %llu %llu %llu %llu\n", name, Long{tally.samples}, unit,
                            Long{tally.minimum}, Long{tally.maximum}, Long{tally.sum}, Long{tally.squares});
    }
}

/// The data lines of a target or a node.
template <class Counters>
std::string format_data_lines(const Counters& counters) {
    std::string text;
    add_line(text, "read_bytes", counters.read_bytes, "bytes");
    add_line(text, "write_bytes", counters.write_bytes, "bytes");
    add_line(text, "read", counters.read_us, "usec");
    add_line(text, "write", counters.write_us, "usec");
    return text;
}

std::string format_snapshot_time(double read_time) {
    const double full_seconds = std::floor(read_time);
    return format_text("%-25s %.0f.%06d secs.usecs\n", "snapshot_time", full_seconds,
                       static_cast<int>((read_time - full_seconds) * 1e6));
}

}  // namespace

void NodeCounters::add(const ModelOperation& operation, std::uint64_t bytes, Time duration) noexcept {
    ++calls[static_cast<std::size_t>(operation.kind)];
    if (operation.kind == ModelCallKind::read || operation.kind == ModelCallKind::write) {
        const bool is_write = operation.kind == ModelCallKind::write;
        (is_write ? write_bytes : read_bytes).add(bytes);
        (is_write ? write_us : read_us).add(static_cast<std::uint64_t>(duration / 1000));
    }
}

std::string format_stats(const TargetCounters& target, double read_time) {
    std::string text = format_snapshot_time(read_time) + format_data_lines(target);
    if (target.cache_hits + target.cache_misses > 0) {
        text +=
            format_text("%-25s %llu samples [pages] 1 1 %llu\n", "cache_access",
                        Long{target.cache_hits + target.cache_misses}, Long{target.cache_hits + target.cache_misses});
        text += format_text("%-25s %llu samples [pages] 1 1 %llu\n", "cache_hit", Long{target.cache_hits},
                            Long{target.cache_hits});
        text += format_text("%-25s %llu samples [pages] 1 1 %llu\n", "cache_miss", Long{target.cache_misses},
                            Long{target.cache_misses});
    }
    return text;
}

std::string format_brw_stats(const TargetCounters& target, double read_time) {
    const double full_seconds = std::floor(read_time);
    std::string text = format_text("snapshot_time:         %.0f.%06d (secs.usecs)\n\n", full_seconds,
                                   static_cast<int>((read_time - full_seconds) * 1e6));
    text += "                           read      |     write\n";
    text += "pages per bulk r/w     rpcs  % cum % |  rpcs  % cum %\n";
    Long reads = 0, writes = 0, cumulative_reads = 0, cumulative_writes = 0;
    for (std::size_t i = 0; i < target.read_pages.size(); ++i) {
        reads += target.read_pages[i];
        writes += target.write_pages[i];
    }
    const auto percent = [](Long part, Long sum) { return sum == 0 ? 0 : static_cast<int>(part * 100 / sum); };
    for (std::size_t i = 0; i < target.read_pages.size(); ++i) {
        const Long r = target.read_pages[i], w = target.write_pages[i];
        if (r + w == 0) {
            continue;
        }
        cumulative_reads += r;
        cumulative_writes += w;
        text +=
            format_text("%llu:\t\t%9llu %3d %3d   | %5llu %3d %3d\n", 1ULL << i, r, percent(r, reads),
                        percent(cumulative_reads, reads), w, percent(w, writes), percent(cumulative_writes, writes));
    }
    return text;
}

std::string format_llite_stats(const NodeCounters& node, double read_time) {
    std::string text = format_snapshot_time(read_time) + format_data_lines(node);
    constexpr const char* names[] = {"open",    "create", "close", nullptr, nullptr,  "fsync",
                                     "getattr", "unlink", "mkdir", "rmdir", "rename", "readdir"};
    for (std::size_t call = 0; call < node.calls.size(); ++call) {
        if (names[call] != nullptr && node.calls[call] > 0) {
            text += format_text("%-25s %llu samples [regs]\n", names[call], Long{node.calls[call]});
        }
    }
    return text;
}

std::string format_kbytes(std::uint64_t bytes) {
    return std::to_string(bytes / 1024) + "\n";
}

std::string format_diskstats(const MonitoringData& monitoring) {
    std::string text;
    const auto add_rows = [&text](int major, const std::vector<MediumCounters>& rows) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const MediumCounters& row = rows[i];
            const Long busy_ms = static_cast<Long>(row.busy / 1'000'000);
            text += format_text("%4d %7d %s %llu 0 %llu 0 %llu 0 %llu 0 0 %llu %llu\n", major, static_cast<int>(i),
                                row.id.c_str(), Long{row.reads}, Long{row.read_bytes / 512}, Long{row.writes},
                                Long{row.written_bytes / 512}, busy_ms, busy_ms);
        }
    };
    add_rows(9, monitoring.media);   // md
    add_rows(8, monitoring.drives);  // sd
    return text;
}

std::string format_net_dev(const MonitoringData& monitoring) {
    std::string text =
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|"
        "bytes    packets errs drop fifo colls carrier compressed\n";
    for (const LinkCounters& link : monitoring.links) {
        text += format_text("%6s: %llu %llu 0 0 0 0 0 0 %llu %llu 0 %llu 0 0 0 0\n", link.id.c_str(),
                            Long{link.received_bytes}, Long{link.received_messages}, Long{link.sent_bytes},
                            Long{link.sent_messages}, Long{link.lost_messages});
    }
    return text;
}

std::string format_md_stats(const ServerCounters& server, double read_time) {
    constexpr const char* names[] = {"open",    "open",   "close", nullptr, nullptr,  nullptr,
                                     "getattr", "unlink", "mkdir", "rmdir", "rename", "readdir"};
    std::string text = format_snapshot_time(read_time);
    for (std::size_t call = 0; call < server.calls.size(); ++call) {
        if (names[call] != nullptr) {
            StatsCounter tally = server.calls[call];
            if (call == static_cast<std::size_t>(ModelCallKind::stat) && server.background_stats >= 1) {
                tally.add_many(static_cast<std::uint64_t>(server.background_stats), server.background_us);
            }
            // Lustre counts an open that creates a file as mknod.
            add_line(text, call == static_cast<std::size_t>(ModelCallKind::create) ? "mknod" : names[call], tally,
                     "usec");
        }
    }
    return text;
}

std::string format_lmt_rows(const MonitoringData& monitoring, double epoch) {
    std::string text = "TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES\n";
    for (const CounterSample& sample : monitoring.samples) {
        for (std::size_t i = 0; i < monitoring.targets.size(); ++i) {
            text += format_text("%.3f,%s,%llu,%llu\n", epoch + to_seconds(sample.time),
                                monitoring.targets[i].name.c_str(), Long{sample.read[i]}, Long{sample.written[i]});
        }
    }
    return text;
}

std::string format_log(const MonitoringData& monitoring, double epoch) {
    std::string text;
    for (const LogMessage& message : monitoring.messages) {
        const auto log_time = static_cast<std::time_t>(epoch + to_seconds(message.time));
        std::tm parts{};
        gmtime_r(&log_time, &parts);
        char stamp[32];
        std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S+00:00", &parts);
        text += std::string(stamp) + " " + message.host + " kernel: " + message.text + "\n";
    }
    return text;
}

std::vector<MonitoringFile> list_monitoring_files(const MonitoringData& monitoring, std::size_t nodes) {
    std::vector<MonitoringFile> files;
    const std::string lustre = "proc/fs/lustre/";
    for (std::size_t i = 0; i < monitoring.targets.size(); ++i) {
        const std::string directory = lustre + "obdfilter/" + monitoring.targets[i].name + "/";
        files.push_back({directory + "stats", [i](const MonitoringData& current, double, double read_time) {
                             return format_stats(current.targets[i], read_time);
                         }});
        files.push_back({directory + "brw_stats", [i](const MonitoringData& current, double, double read_time) {
                             return format_brw_stats(current.targets[i], read_time);
                         }});
        if (monitoring.targets[i].capacity_bytes > 0) {
            files.push_back({directory + "kbytestotal", [i](const MonitoringData& current, double, double) {
                                 return format_kbytes(current.targets[i].capacity_bytes);
                             }});
            files.push_back({directory + "kbytesavail",
                             [i](const MonitoringData& current, double, double) {
                                 return format_kbytes(current.targets[i].free_bytes);
                             },
                             true});
        }
    }
    for (std::size_t i = 0; i < monitoring.metadata.size(); ++i) {
        const std::string name = monitoring.file_system + "-MDT0000-" + monitoring.metadata[i].id;
        files.push_back(
            {lustre + "mdt/" + name + "/md_stats", [i](const MonitoringData& current, double, double read_time) {
                 return format_md_stats(current.metadata[i], read_time);
             }});
    }
    for (std::size_t i = 0; i < std::min(nodes, monitoring.nodes.size()); ++i) {
        files.push_back({lustre + "llite/" + monitoring.file_system + "-" + monitoring.nodes[i].id + "/stats",
                         [i](const MonitoringData& current, double, double read_time) {
                             return format_llite_stats(current.nodes[i], read_time);
                         }});
    }
    if (!monitoring.media.empty()) {
        files.push_back({"proc/diskstats",
                         [](const MonitoringData& current, double, double) { return format_diskstats(current); }});
    }
    if (!monitoring.links.empty()) {
        files.push_back(
            {"proc/net/dev", [](const MonitoringData& current, double, double) { return format_net_dev(current); }});
    }
    files.push_back({"lmt.csv", [](const MonitoringData& current, double epoch, double) {
                         return format_lmt_rows(current, epoch);
                     }});
    files.push_back(
        {"messages", [](const MonitoringData& current, double epoch, double) { return format_log(current, epoch); }});
    return files;
}

}  // namespace sonde::simulate
