// SPDX-License-Identifier: Apache-2.0
// The engine's operations on names, on the machine's metadata servers.
#pragma once

#include "backends/names.hpp"
#include "virtual/channel.hpp"

#include <string>
#include <vector>

namespace sonde::simulate {

class SimulatedNames final : public backends::Names {
 public:
    SimulatedNames(Conductor& conductor, Directories& directories, bool direct)
        : conductor_(conductor), directories_(directories), direct_(direct) {}

    backends::Directory enter(backends::Directory at, const char* name) noexcept override;
    void leave(backends::Directory directory) noexcept override;
    int make_file(backends::Directory at, const char* name, const backends::NewFile& how) noexcept override;
    int make_directory(backends::Directory at, const char* name) noexcept override;
    int look(backends::Directory at, const char* name, const backends::Look& how) noexcept override;
    int examine(backends::Directory at, const char* name, const backends::Look& how,
                backends::Facts& facts) noexcept override;
    int open_close(backends::Directory at, const char* name) noexcept override;
    std::int64_t read(backends::Directory at, const char* name, std::span<std::byte> into) noexcept override;
    int rename(backends::Directory at, const char* name, const char* to) noexcept override;
    int remove_file(backends::Directory at, const char* name) noexcept override;
    int remove_directory(backends::Directory at, const char* name) noexcept override;
    /// All entries at once: what is put into the buffer only says which directory they are of.
    std::int64_t list(backends::Directory directory, std::span<std::byte> buffer) noexcept override;
    bool next(std::span<const std::byte> listed, std::size_t& place, backends::Entry& entry) const noexcept override;
    int sync(backends::Directory directory) noexcept override;

 private:
    std::string path_of(backends::Directory at, const char* name) const;
    std::uint64_t* parent_of(const std::string& path);
    void call(Call what, FileId file, std::uint64_t length, bool direct = false);

    Conductor& conductor_;
    Directories& directories_;
    bool direct_;
    std::vector<std::string> entered_;
    std::vector<bool> listed_;
};

}  // namespace sonde::simulate
