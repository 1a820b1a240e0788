// SPDX-License-Identifier: Apache-2.0
#include "virtual/names.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sonde::simulate {

using backends::Directory;

Listings::Listings(const Machine& machine, const Directories& directories) {
    std::vector<std::string> names = machine.names();
    for (const auto& [path, count] : directories.entries) {
        names.push_back(path);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string& name : names) {
        add(name, names);
    }
    for (auto& [path, entries] : entries_) {
        std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
        for (Entry& entry : entries) {
            const std::string whole = path + "/" + entry.name;
            entry.directory = entries_.contains(whole) || directories.entries.contains(whole);
        }
    }
}

/// To the entries of its parent, which is one of its own parent's though nobody made it here.
void Listings::add(const std::string& path, const std::vector<std::string>& names) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) {
        return;
    }
    const std::string parent = path.substr(0, slash);
    const auto [found, fresh] = entries_.try_emplace(parent);
    found->second.push_back({path.substr(slash + 1), false});
    if (fresh && !std::binary_search(names.begin(), names.end(), parent)) {
        add(parent, names);
    }
}

const std::vector<Listings::Entry>& Listings::of(const std::string& directory) const {
    static const std::vector<Entry> none_there;
    const auto found = entries_.find(directory);
    return found == entries_.end() ? none_there : found->second;
}

std::string SimulatedNames::path_of(Directory at, const char* name) const {
    return at == backends::anywhere || name[0] == '/' ? std::string(name)
                                                      : entered_[static_cast<std::size_t>(at)] + "/" + name;
}

/// Entries of the directory that a path lies in; it is there, as the engine makes directories first.
std::uint64_t* SimulatedNames::parent_of(const std::string& path) {
    return &directories_.entries[path.substr(0, path.rfind('/'))];
}

void SimulatedNames::call(Call what, FileId file, std::uint64_t length, bool direct) {
    Operation operation;
    operation.call = what;
    operation.file = file;
    operation.length = length;
    operation.direct = direct;
    conductor_.call(operation);
}

Directory SimulatedNames::enter(Directory at, const char* name) noexcept {
    std::string path = path_of(at, name);
    if (path.ends_with("/.")) {
        path.resize(path.size() - 2);
    }
    entered_.push_back(std::move(path));
    listed_.push_back(false);
    return static_cast<Directory>(entered_.size()) - 1;
}

void SimulatedNames::leave(Directory directory) noexcept {
    if (static_cast<std::size_t>(directory) + 1 == entered_.size()) {
        entered_.pop_back();
        listed_.pop_back();
    }
}

int SimulatedNames::make_file(Directory at, const char* name, const backends::NewFile& how) noexcept {
    const std::string path = path_of(at, name);
    Machine& machine = conductor_.machine();
    const bool there = machine.exists(path);
    if (there && how.exclusive) {
        return -EEXIST;
    }
    const FileId file = machine.file(path);
    if (!there) {
        ++*parent_of(path);
    }
    call(there ? Call::open : Call::create, file, how.content.size());
    if (how.node) {
        return 0;
    }
    if (!how.content.empty()) {
        call(Call::write, file, how.content.size(), direct_);
        if (how.fsync) {
            call(Call::fsync, file, 0);
        }
    }
    call(Call::close, file, 0);
    return 0;
}

int SimulatedNames::make_directory(Directory at, const char* name) noexcept {
    const std::string path = path_of(at, name);
    if (directories_.entries.contains(path)) {
        return -EEXIST;
    }
    ++*parent_of(path);
    directories_.entries.emplace(path, 0);
    call(Call::mkdir, conductor_.machine().file(path), 0);
    return 0;
}

int SimulatedNames::look(Directory at, const char* name, const backends::Look& /*how*/) noexcept {
    const std::string path = path_of(at, name);
    Machine& machine = conductor_.machine();
    if (!machine.exists(path) && !directories_.entries.contains(path)) {
        return -ENOENT;
    }
    const FileId file = machine.file(path);
    call(Call::stat, file, machine.size(file));
    return 0;
}

int SimulatedNames::examine(Directory at, const char* name, const backends::Look& how,
                            backends::Facts& facts) noexcept {
    const std::string path = path_of(at, name);
    facts.kind = directories_.entries.contains(path) ? backends::Kind::directory : backends::Kind::file;
    if (conductor_.machine().exists(path)) {
        facts.bytes = conductor_.machine().size(conductor_.machine().file(path));
    }
    return look(at, name, how);
}

int SimulatedNames::open_close(Directory at, const char* name) noexcept {
    const std::string path = path_of(at, name);
    Machine& machine = conductor_.machine();
    if (!machine.exists(path)) {
        return -ENOENT;
    }
    const FileId file = machine.file(path);
    call(Call::open, file, machine.size(file));
    call(Call::close, file, 0);
    return 0;
}

std::int64_t SimulatedNames::read(Directory at, const char* name, std::span<std::byte> into) noexcept {
    const std::string path = path_of(at, name);
    Machine& machine = conductor_.machine();
    if (!machine.exists(path)) {
        return -ENOENT;
    }
    const FileId file = machine.file(path);
    const std::uint64_t bytes = std::min<std::uint64_t>(into.size(), machine.size(file));
    call(Call::open, file, machine.size(file));
    call(Call::read, file, bytes, direct_);
    call(Call::close, file, 0);
    return static_cast<std::int64_t>(bytes);
}

int SimulatedNames::rename(Directory at, const char* name, const char* to) noexcept {
    const std::string from = path_of(at, name);
    Machine& machine = conductor_.machine();
    if (!machine.exists(from)) {
        return -ENOENT;
    }
    call(Call::rename, machine.file(from), 0);
    machine.rename(from, path_of(at, to));
    return 0;
}

int SimulatedNames::remove_file(Directory at, const char* name) noexcept {
    const std::string path = path_of(at, name);
    Machine& machine = conductor_.machine();
    if (!machine.exists(path)) {
        return -ENOENT;
    }
    call(Call::remove, machine.file(path), 0);
    machine.forget(path);
    --*parent_of(path);
    return 0;
}

int SimulatedNames::remove_directory(Directory at, const char* name) noexcept {
    const std::string path = path_of(at, name);
    const auto found = directories_.entries.try_emplace(path, 0).first;  // the engine may have made it beforehand
    if (found->second > 0) {
        return -ENOTEMPTY;
    }
    call(Call::rmdir, conductor_.machine().file(path), 0);
    conductor_.machine().forget(path);
    directories_.entries.erase(path);
    --*parent_of(path);
    return 0;
}

namespace {

/// What list() leaves for next() where a kernel would leave entries.
struct Handed {
    const std::vector<Listings::Entry>* entries = nullptr;
};

}  // namespace

std::int64_t SimulatedNames::list(Directory directory, std::span<std::byte> buffer) noexcept {
    const auto index = static_cast<std::size_t>(directory);
    if (listed_[index]) {
        return 0;
    }
    listed_[index] = true;
    if (!directories_.listed) {
        directories_.listed = std::make_unique<Listings>(conductor_.machine(), directories_);
    }
    const Handed handed{&directories_.listed->of(entered_[index])};
    call(Call::readdir, conductor_.machine().file(entered_[index]), handed.entries->size());
    std::memcpy(buffer.data(), &handed, sizeof handed);
    return sizeof handed;
}

bool SimulatedNames::next(std::span<const std::byte> listed, std::size_t& place,
                          backends::Entry& entry) const noexcept {
    if (listed.empty()) {
        return false;  // the end of the directory
    }
    Handed handed;
    std::memcpy(&handed, listed.data(), sizeof handed);
    if (place >= handed.entries->size()) {
        return false;
    }
    const Listings::Entry& found = (*handed.entries)[place++];
    entry = {found.name.c_str(), found.directory ? backends::Kind::directory : backends::Kind::file};
    return true;
}

int SimulatedNames::sync(Directory /*directory*/) noexcept {
    return 0;
}

}  // namespace sonde::simulate
