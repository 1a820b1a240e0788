// SPDX-License-Identifier: Apache-2.0
// Metadata operations: a message to a metadata server, its threads, its journal, and the answer.
#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {
namespace {

bool changes_names(ModelCallKind kind) {
    return kind == ModelCallKind::create || kind == ModelCallKind::remove || kind == ModelCallKind::mkdir ||
           kind == ModelCallKind::rmdir || kind == ModelCallKind::rename;
}

}  // namespace

/// Time of a message to a metadata server, in one direction.
Time Core::metadata_message_time(const Client& client) const {
    Time time = 0;
    const auto add = [&](int index) {
        if (index >= 0) {
            const LinkSite& link_site = links[static_cast<std::size_t>(index)].site;
            time += link_site.latency + link_site.request_cost;
        }
    };
    add(client.site.link);
    if (!site.forwarders.empty()) {
        add(site.forwarders.front());
    }
    if (client.site.routed && !routers.empty()) {
        add(static_cast<int>(routers.front()));
    }
    add(servers[static_cast<std::size_t>(site.metadata_servers.front())].site.link);
    return time;
}

void Core::send_metadata_call(std::uint32_t call) {
    Client& client = clients[streams[calls[call].operation.stream].client];
    push(add_time(reserve_forwarder(choose_forwarder(client), now), metadata_message_time(client)),
         EventKind::metadata_call, call);
}

Time Core::metadata_cost(const Server& server, const ModelOperation& operation, FileState& file) const {
    const ServerSite& costs = server.site;
    Time cost = 0;
    switch (operation.kind) {
        case ModelCallKind::create:
            cost = costs.create;
            break;
        case ModelCallKind::open:
        case ModelCallKind::close:
            cost = costs.open;
            break;
        case ModelCallKind::stat:
            cost = file.is_cached_by_server && costs.cached >= 0 ? costs.cached : costs.stat;
            break;
        case ModelCallKind::remove:
            cost = costs.remove;
            break;
        case ModelCallKind::mkdir:
        case ModelCallKind::rmdir:
            cost = costs.mkdir;
            break;
        case ModelCallKind::rename:
            cost = costs.rename;
            break;
        case ModelCallKind::readdir:
            cost = costs.open + costs.readdir * static_cast<Time>(operation.length);
            break;
        default:
            break;
    }
    if (operation.kind == ModelCallKind::open || operation.kind == ModelCallKind::create) {
        cost += site.fs.layout_cost * file.layout.count;
    }
    return cost;
}

/// Additional time to create a file with content. It occupies no server.
Time Core::metadata_delay(const ModelOperation& operation) const {
    if (operation.kind != ModelCallKind::create || operation.length == 0) {
        return 0;
    }
    return site.data_cost + seconds_to_time(site.size_cost_s * static_cast<double>(operation.length) / 1024);
}

void Core::serve_metadata_call(std::uint32_t call) {
    const ModelOperation& operation = calls[call].operation;
    FileState& file = files[operation.file];
    // Files are distributed over the metadata servers.
    const std::size_t server_number = operation.file % site.metadata_servers.size();
    Server& server = servers[static_cast<std::size_t>(site.metadata_servers[server_number])];
    double factor = server.slowdown * server.noise.factor(now);
    if (metadata_share > 0) {
        factor /= 1 - metadata_share;  // other users occupy the threads for this share of the time
    }
    Time end = server.threads.reserve(now, scale_time(metadata_cost(server, operation, file), factor)).end;
    if (changes_names(operation.kind) && server.site.journal > 0) {
        end = server.journal.reserve(end, scale_time(server.site.journal, factor)).end;
    }
    file.is_cached_by_server = true;
    traces.metadata[server_number].calls[static_cast<std::size_t>(operation.kind)].add(
        static_cast<std::uint64_t>((end - now) / 1000));
    const Time answer_time = metadata_message_time(clients[streams[operation.stream].client]);
    push(end + metadata_delay(operation) + answer_time, EventKind::metadata_done, call);
}

/// Creates a file with the default layout. Start targets follow each other round robin, so that neither one target nor
/// one server gets a convoy.
FileId Core::create_file() {
    FileId id = 0;
    if (free_files.empty()) {
        id = static_cast<FileId>(files.size());
        files.emplace_back();
    } else {
        id = free_files.back();
        free_files.pop_back();
        files[id] = FileState{};
    }
    FileState& file = files[id];
    file.layout.size = std::max<std::uint64_t>(site.fs.stripe_size, page_bytes);
    const std::int64_t count = site.fs.stripe_count;
    const auto target_count = static_cast<std::int64_t>(targets.size());
    file.layout.count = static_cast<std::uint32_t>(count < 1 || count > target_count ? target_count : count);
    file.layout.start = site.fs.stripe_start.value_or(static_cast<std::uint32_t>(next_start_target++ % targets.size()));
    place_on_drives(file);
    return id;
}

/// Chooses the position of a file on the drives and its fragments. A file system with fill level u has its free space
/// uniformly up to 2 u of the way to the inner edge; above u = 0.75 files are fragmented.
void Core::place_on_drives(FileState& file) {
    const double used = full_share >= 0 ? full_share : site.fs.used;
    file.drive_position = used <= 0 ? 0 : random.uniform() * std::min(1.0, 2 * used);
    file.fragments = used > 0.75 ? 1 + static_cast<std::uint32_t>((used - 0.75) * 4 * 15) : 1;
}

}  // namespace sonde::simulate
