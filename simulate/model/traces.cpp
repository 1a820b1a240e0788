// SPDX-License-Identifier: Apache-2.0
#include "model/traces.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace sonde::simulate {
namespace {

/// printf into a string; all that is written here is short.
template <class... Args>
std::string shaped(const char* form, Args... args) {
    char text[512];
    std::snprintf(text, sizeof text, form, args...);
    return text;
}

using Long = unsigned long long;

void add_line(std::string& text, const char* name, const Tally& tally, const char* unit) {
    if (tally.samples > 0) {  // as Lustre: lines without samples vanish
        text += shaped("%-25s %llu samples [%s] %llu %llu %llu %llu\n", name, Long{tally.samples}, unit,
                       Long{tally.least}, Long{tally.most}, Long{tally.sum}, Long{tally.squares});
    }
}

/// Of a target or a node.
template <class Trace>
std::string lines_of_data(const Trace& trace) {
    std::string text;
    add_line(text, "read_bytes", trace.read_bytes, "bytes");
    add_line(text, "write_bytes", trace.write_bytes, "bytes");
    add_line(text, "read", trace.read_us, "usec");
    add_line(text, "write", trace.write_us, "usec");
    return text;
}

std::string snapshot(double at) {
    const double whole = std::floor(at);
    return shaped("%-25s %.0f.%06d secs.usecs\n", "snapshot_time", whole, static_cast<int>((at - whole) * 1e6));
}

}  // namespace

void NodeTrace::add(const Operation& operation, std::uint64_t moved, Time length) noexcept {
    ++calls[static_cast<std::size_t>(operation.call)];
    if (operation.call == Call::read || operation.call == Call::write) {
        const bool writing = operation.call == Call::write;
        (writing ? write_bytes : read_bytes).add(moved);
        (writing ? write_us : read_us).add(static_cast<std::uint64_t>(length / 1000));
    }
}

std::string stats_text(const TargetTrace& target, double at) {
    std::string text = snapshot(at) + lines_of_data(target);
    if (target.cache_hits + target.cache_misses > 0) {
        text += shaped("%-25s %llu samples [pages] 1 1 %llu\n", "cache_access",
                       Long{target.cache_hits + target.cache_misses}, Long{target.cache_hits + target.cache_misses});
        text += shaped("%-25s %llu samples [pages] 1 1 %llu\n", "cache_hit", Long{target.cache_hits},
                       Long{target.cache_hits});
        text += shaped("%-25s %llu samples [pages] 1 1 %llu\n", "cache_miss", Long{target.cache_misses},
                       Long{target.cache_misses});
    }
    return text;
}

std::string brw_stats_text(const TargetTrace& target, double at) {
    const double whole = std::floor(at);
    std::string text =
        shaped("snapshot_time:         %.0f.%06d (secs.usecs)\n\n", whole, static_cast<int>((at - whole) * 1e6));
    text += "                           read      |     write\n";
    text += "pages per bulk r/w     rpcs  % cum % |  rpcs  % cum %\n";
    Long reads = 0, writes = 0, reads_so_far = 0, writes_so_far = 0;
    for (std::size_t i = 0; i < target.read_pages.size(); ++i) {
        reads += target.read_pages[i];
        writes += target.write_pages[i];
    }
    const auto percent = [](Long part, Long all) { return all == 0 ? 0 : static_cast<int>(part * 100 / all); };
    for (std::size_t i = 0; i < target.read_pages.size(); ++i) {
        const Long r = target.read_pages[i], w = target.write_pages[i];
        if (r + w == 0) {
            continue;
        }
        reads_so_far += r;
        writes_so_far += w;
        text += shaped("%llu:\t\t%9llu %3d %3d   | %5llu %3d %3d\n", 1ULL << i, r, percent(r, reads),
                       percent(reads_so_far, reads), w, percent(w, writes), percent(writes_so_far, writes));
    }
    return text;
}

std::string llite_text(const NodeTrace& node, double at) {
    std::string text = snapshot(at) + lines_of_data(node);
    constexpr const char* names[] = {"open",    "create", "close", nullptr, nullptr,  "fsync",
                                     "getattr", "unlink", "mkdir", "rmdir", "rename", "readdir"};
    for (std::size_t call = 0; call < node.calls.size(); ++call) {
        if (names[call] != nullptr && node.calls[call] > 0) {
            text += shaped("%-25s %llu samples [regs]\n", names[call], Long{node.calls[call]});
        }
    }
    return text;
}

std::string kbytes_text(std::uint64_t bytes) {
    return std::to_string(bytes / 1024) + "\n";
}

std::string diskstats_text(const Traces& traces) {
    std::string text;
    for (std::size_t i = 0; i < traces.media.size(); ++i) {
        const MediumTrace& medium = traces.media[i];
        const Long busy_ms = static_cast<Long>(medium.busy / 1'000'000);
        text += shaped("%4d %7d %s %llu 0 %llu 0 %llu 0 %llu 0 0 %llu %llu\n", 9, static_cast<int>(i),
                       medium.id.c_str(), Long{medium.reads}, Long{medium.read_bytes / 512}, Long{medium.writes},
                       Long{medium.written_bytes / 512}, busy_ms, busy_ms);
    }
    return text;
}

std::string md_stats_text(const ServerTrace& server, double at) {
    constexpr const char* names[] = {"open",    "open",   "close", nullptr, nullptr,  nullptr,
                                     "getattr", "unlink", "mkdir", "rmdir", "rename", "readdir"};
    std::string text = snapshot(at);
    for (std::size_t call = 0; call < server.calls.size(); ++call) {
        if (names[call] != nullptr) {
            Tally tally = server.calls[call];
            if (call == static_cast<std::size_t>(Call::stat) && server.others >= 1) {
                tally.add_many(static_cast<std::uint64_t>(server.others), server.other_us);
            }
            // A create is an open that makes a file: md_stats counts it as mknod.
            add_line(text, call == static_cast<std::size_t>(Call::create) ? "mknod" : names[call], tally, "usec");
        }
    }
    return text;
}

std::string lmt_text(const Traces& traces, double epoch) {
    std::string text = "TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES\n";
    for (const Sample& sample : traces.samples) {
        for (std::size_t i = 0; i < traces.targets.size(); ++i) {
            text += shaped("%.3f,%s,%llu,%llu\n", epoch + seconds(sample.at), traces.targets[i].name.c_str(),
                           Long{sample.read[i]}, Long{sample.written[i]});
        }
    }
    return text;
}

std::string log_text(const Traces& traces, double epoch) {
    std::string text;
    for (const Message& message : traces.messages) {
        const auto when = static_cast<std::time_t>(epoch + seconds(message.at));
        std::tm parts{};
        gmtime_r(&when, &parts);
        char stamp[32];
        std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S+00:00", &parts);
        text += std::string(stamp) + " " + message.host + " kernel: " + message.text + "\n";
    }
    return text;
}

std::vector<TraceFile> trace_files(const Traces& traces, std::size_t nodes) {
    std::vector<TraceFile> files;
    const std::string lustre = "proc/fs/lustre/";
    for (std::size_t i = 0; i < traces.targets.size(); ++i) {
        const std::string folder = lustre + "obdfilter/" + traces.targets[i].name + "/";
        files.push_back(
            {folder + "stats", [i](const Traces& all, double, double at) { return stats_text(all.targets[i], at); }});
        files.push_back({folder + "brw_stats",
                         [i](const Traces& all, double, double at) { return brw_stats_text(all.targets[i], at); }});
        if (traces.targets[i].capacity > 0) {
            files.push_back({folder + "kbytestotal",
                             [i](const Traces& all, double, double) { return kbytes_text(all.targets[i].capacity); }});
            files.push_back({folder + "kbytesavail",
                             [i](const Traces& all, double, double) { return kbytes_text(all.targets[i].space); },
                             true});
        }
    }
    for (std::size_t i = 0; i < traces.metadata.size(); ++i) {
        const std::string name = traces.file_system + "-MDT0000-" + traces.metadata[i].id;
        files.push_back({lustre + "mdt/" + name + "/md_stats",
                         [i](const Traces& all, double, double at) { return md_stats_text(all.metadata[i], at); }});
    }
    for (std::size_t i = 0; i < std::min(nodes, traces.nodes.size()); ++i) {
        files.push_back({lustre + "llite/" + traces.file_system + "-" + traces.nodes[i].id + "/stats",
                         [i](const Traces& all, double, double at) { return llite_text(all.nodes[i], at); }});
    }
    if (!traces.media.empty()) {
        files.push_back({"proc/diskstats", [](const Traces& all, double, double) { return diskstats_text(all); }});
    }
    files.push_back({"lmt.csv", [](const Traces& all, double epoch, double) { return lmt_text(all, epoch); }});
    files.push_back({"messages", [](const Traces& all, double epoch, double) { return log_text(all, epoch); }});
    return files;
}

}  // namespace sonde::simulate
