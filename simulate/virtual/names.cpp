// SPDX-License-Identifier: Apache-2.0
#include "virtual/names.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sonde::simulate {

using backends::Directory;

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
    entered_.push_back(path_of(at, name));
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

std::int64_t SimulatedNames::list(Directory directory, std::span<std::byte> buffer) noexcept {
    const auto index = static_cast<std::size_t>(directory);
    if (listed_[index]) {
        return 0;
    }
    listed_[index] = true;
    const std::string& path = entered_[index];
    const std::uint64_t count = directories_.entries[path];
    call(Call::readdir, conductor_.machine().file(path), count);
    std::memcpy(buffer.data(), &count, sizeof count);
    return sizeof count;
}

bool SimulatedNames::next(std::span<const std::byte> listed, std::size_t& place,
                          backends::Entry& entry) const noexcept {
    std::uint64_t count = 0;
    std::memcpy(&count, listed.data(), sizeof count);
    if (place >= count) {
        return false;
    }
    ++place;
    entry = {"entry", backends::Kind::file};
    return true;
}

int SimulatedNames::sync(Directory /*directory*/) noexcept {
    return 0;
}

}  // namespace sonde::simulate
