// SPDX-License-Identifier: Apache-2.0
#include "model/machine.hpp"

#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {

Machine::Machine(SiteModel site, const Options& options, Listener& listener)
    : core_(std::make_unique<Core>(std::move(site), options, listener)) {
}
Machine::~Machine() = default;

const SiteModel& Machine::site() const {
    return core_->site;
}

FileId Machine::file(std::string_view path) {
    const auto [found, fresh] = core_->names.try_emplace(std::string(path), 0);
    if (fresh) {
        found->second = core_->make_file();
    }
    return found->second;
}

bool Machine::exists(std::string_view path) const {
    return core_->names.contains(std::string(path));
}

Layout Machine::layout(FileId file) const {
    return core_->files[file].layout;
}

void Machine::set_layout(FileId file, const Layout& layout) {
    if (layout.size < page || layout.size % page != 0) {
        throw SiteError("a stripe of " + std::to_string(layout.size) + " bytes: it must be a multiple of 4096");
    }
    if (layout.count == 0 || layout.count > core_->targets.size() || layout.start >= core_->targets.size()) {
        throw SiteError("a layout over " + std::to_string(layout.count) + " targets from number " +
                        std::to_string(layout.start) + ": the file system has " +
                        std::to_string(core_->targets.size()));
    }
    core_->files[file].layout = layout;
}

std::uint64_t Machine::size(FileId file) const {
    return core_->files[file].size;
}

void Machine::resize(FileId id, std::uint64_t size) {
    File& file = core_->files[id];
    if (size < file.size) {
        for (Client& client : core_->clients) {
            client.pages.forget(id);
        }
        file.lock_holders.clear();
    }
    file.size = size;
    file.allocated = std::min(file.allocated, size);
    if (size == 0) {
        core_->lay_out_anew(file);
    }
}

void Machine::allocate(FileId id, std::uint64_t size) {
    File& file = core_->files[id];
    file.allocated = std::max(file.allocated, size);
}

void Machine::forget(std::string_view path) {
    const auto found = core_->names.find(std::string(path));
    if (found == core_->names.end()) {
        return;
    }
    File& file = core_->files[found->second];
    if (file.size > 0) {
        for (Client& client : core_->clients) {
            client.pages.forget(found->second);
        }
    }
    // What is still under way for it must find it.
    if (file.pending.empty() && file.syncing.empty()) {
        core_->free_files.push_back(found->second);
    }
    core_->names.erase(found);
}

void Machine::rename(std::string_view from, std::string_view to) {
    const auto found = core_->names.find(std::string(from));
    if (found != core_->names.end() && from != to) {
        const FileId id = found->second;
        forget(to);
        core_->names.erase(std::string(from));
        core_->names.emplace(std::string(to), id);
    }
}

std::vector<std::string> Machine::names() const {
    std::vector<std::string> all;
    all.reserve(core_->names.size());
    for (const auto& [name, file] : core_->names) {
        all.push_back(name);
    }
    return all;
}

StreamId Machine::stream(std::uint32_t client) {
    StreamId id = 0;
    if (core_->free_streams.empty()) {
        id = static_cast<StreamId>(core_->streams.size());
        core_->streams.emplace_back();
    } else {
        id = core_->free_streams.back();
        core_->free_streams.pop_back();
        Stream fresh;  // what the last one of that number left behind is still on its way
        std::copy(std::begin(core_->streams[id].turnstile), std::end(core_->streams[id].turnstile), fresh.turnstile);
        core_->streams[id] = std::move(fresh);
    }
    core_->streams[id].client = client;
    core_->clients[client].streams.push_back(id);
    return id;
}

void Machine::end_stream(StreamId id) {
    core_->seal(id);
    core_->end_writing(core_->streams[id]);
    std::erase(core_->clients[core_->streams[id].client].streams, id);
    if (core_->streams[id].missing.empty()) {
        core_->free_streams.push_back(id);  // else read-ahead is still under way for it
    }
}

Time Machine::now() const {
    return core_->now;
}

void Machine::submit(Time at, const Operation& operation) {
    core_->submit(at, operation);
}

std::optional<Done> Machine::at_once(Time at, const Operation& operation) {
    return core_->at_once(at, operation);
}

void Machine::wake(Time at, std::uint64_t tag) {
    std::uint32_t alarm = 0;
    if (core_->free_alarms.empty()) {
        alarm = static_cast<std::uint32_t>(core_->alarms.size());
        core_->alarms.push_back(tag);
    } else {
        alarm = core_->free_alarms.back();
        core_->free_alarms.pop_back();
        core_->alarms[alarm] = tag;
    }
    core_->push(std::max(at, core_->now), Happens::wake, alarm);
}

Time Machine::next() const {
    return core_->queue.next();
}

bool Machine::step() {
    if (core_->queue.empty()) {
        return false;
    }
    core_->handle(core_->queue.pop());
    return true;
}

void Machine::advance(Time until) {
    while (core_->queue.next() <= until) {
        core_->handle(core_->queue.pop());
    }
    core_->now = std::max(core_->now, until);
}

void Machine::flush(Time limit) {
    for (StreamId id = 0; id < core_->streams.size(); ++id) {
        core_->seal(id);
    }
    const auto dirty = [this] {
        return std::any_of(core_->clients.begin(), core_->clients.end(),
                           [](const Client& client) { return client.flushing > 0; });
    };
    while (dirty() && next() <= limit) {
        step();
    }
}

void Machine::drop_caches(std::uint32_t client) {
    core_->clients[client].pages.clear();
    for (const StreamId id : core_->clients[client].streams) {
        Stream& stream = core_->streams[id];
        stream.ready_to = stream.ready_from;
    }
}

void Machine::drop_server_caches() {
    for (Server& server : core_->servers) {
        server.cache.clear();
    }
    for (File& file : core_->files) {
        file.known = false;
    }
}

std::uint64_t Machine::cached(std::uint32_t client, FileId file) const {
    return core_->clients[client].pages.bytes_of(file);
}

void Machine::begin_fault(const Fault& fault) {
    core_->begin_fault(fault);
}

void Machine::end_fault(const Fault& fault) {
    core_->end_fault(fault);
}

const Traces& Machine::traces() const {
    core_->count_space();
    return counters();
}

const Traces& Machine::counters() const {
    core_->bring_counters_up_to_date();
    return core_->traces;
}

const std::vector<Fault>& Machine::faults() const {
    return core_->faults;
}

std::vector<Machine::Flow> Machine::flows() const {
    std::vector<Flow> flows;
    for (const Link& link : core_->links) {
        flows.push_back({link.site.id, link.bytes[1], link.bytes[0], link.way[0].busy() + link.way[1].busy()});
    }
    for (std::size_t i = 0; i < core_->targets.size(); ++i) {
        const TargetTrace& trace = core_->traces.targets[i];
        flows.push_back({trace.id, trace.write_bytes.sum, trace.read_bytes.sum, core_->targets[i].rate.busy()});
    }
    return flows;
}

std::uint64_t Machine::events() const {
    return core_->handled;
}

}  // namespace sonde::simulate
