// SPDX-License-Identifier: Apache-2.0
// Operations on names: a message to a metadata server, its threads, its journal, and the answer.
#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {
namespace {

bool changes_names(Call call) {
    return call == Call::create || call == Call::remove || call == Call::mkdir || call == Call::rmdir ||
           call == Call::rename;
}

}  // namespace

/// One way of a message to a metadata server.
Time Core::way_to_names(const Client& client) const {
    Time time = 0;
    const auto add = [&](int link) {
        if (link >= 0) {
            const LinkSite& of = links[static_cast<std::size_t>(link)].site;
            time += of.latency + of.request_cost;
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

void Core::begin_names(std::uint32_t call) {
    Client& client = clients[streams[calls[call].operation.stream].client];
    push(later(forwarded(next_forwarder(client), now), way_to_names(client)), Happens::names, call);
}

Time Core::cost_of_names(const Server& server, const Operation& operation, File& file) const {
    const ServerSite& of = server.site;
    Time cost = 0;
    switch (operation.call) {
        case Call::create:
            cost = of.create;
            break;
        case Call::open:
        case Call::close:
            cost = of.open;
            break;
        case Call::stat:
            cost = file.known && of.cached >= 0 ? of.cached : of.stat;
            break;
        case Call::remove:
            cost = of.remove;
            break;
        case Call::mkdir:
        case Call::rmdir:
            cost = of.mkdir;
            break;
        case Call::rename:
            cost = of.rename;
            break;
        case Call::readdir:
            cost = of.open + of.readdir * static_cast<Time>(operation.length);
            break;
        default:
            break;
    }
    if (operation.call == Call::open || operation.call == Call::create) {
        cost += site.fs.layout_cost * file.layout.count;
    }
    return cost;
}

/// What the making of a file that holds something takes beside its cost, while nobody else is kept from working.
Time Core::delay_of_names(const Operation& operation) const {
    if (operation.call != Call::create || operation.length == 0) {
        return 0;
    }
    return site.data_cost + time_of(site.size_cost_s * static_cast<double>(operation.length) / 1024);
}

void Core::at_names(std::uint32_t call) {
    const Operation& operation = calls[call].operation;
    File& file = files[operation.file];
    // Several metadata servers share the names by file.
    const std::size_t which = operation.file % site.metadata_servers.size();
    Server& server = servers[static_cast<std::size_t>(site.metadata_servers[which])];
    double factor = server.factor * server.weather.factor(now);
    if (names_share > 0) {
        factor /= 1 - names_share;  // others have the threads for this share of the time
    }
    Time end = server.threads.reserve(now, scaled(cost_of_names(server, operation, file), factor)).end;
    if (changes_names(operation.call) && server.site.journal > 0) {
        end = server.journal.reserve(end, scaled(server.site.journal, factor)).end;
    }
    file.known = true;
    traces.metadata[which].calls[static_cast<std::size_t>(operation.call)].add(
        static_cast<std::uint64_t>((end - now) / 1000));
    const Time back = way_to_names(clients[streams[operation.stream].client]);
    push(end + delay_of_names(operation) + back, Happens::names_done, call);
}

/// A new file lies where the next turn says; round robin, so that neither one target nor one server gets a convoy.
FileId Core::make_file() {
    FileId id = 0;
    if (free_files.empty()) {
        id = static_cast<FileId>(files.size());
        files.emplace_back();
    } else {
        id = free_files.back();
        free_files.pop_back();
        files[id] = File{};
    }
    File& file = files[id];
    file.layout.size = std::max<std::uint64_t>(site.fs.stripe_size, page);
    const std::int64_t count = site.fs.stripe_count;
    const auto all = static_cast<std::int64_t>(targets.size());
    file.layout.count = static_cast<std::uint32_t>(count < 1 || count > all ? all : count);
    file.layout.start = site.fs.stripe_start.value_or(static_cast<std::uint32_t>(next_start++ % targets.size()));
    lay_out_anew(file);
    return id;
}

/// Where on the drives it lies. A file system that is full to a share u has its free space anywhere up to 2 u of the
/// way to the inner edge; from three quarters on it is in pieces.
void Core::lay_out_anew(File& file) {
    const double used = full_share >= 0 ? full_share : site.fs.used;
    file.position = used <= 0 ? 0 : chance.uniform() * std::min(1.0, 2 * used);
    file.pieces = used > 0.75 ? 1 + static_cast<std::uint32_t>((used - 0.75) * 4 * 15) : 1;
}

}  // namespace sonde::simulate
