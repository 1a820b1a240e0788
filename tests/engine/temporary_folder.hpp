// SPDX-License-Identifier: Apache-2.0
// A folder below the working directory (the build tree: a disk, not memory) that goes with its owner.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace sonde::tests {

class TemporaryFolder {
 public:
    explicit TemporaryFolder(const std::string& below = std::filesystem::current_path().string())
        : path_(below + "/sonde-test-XXXXXX") {
        if (::mkdtemp(path_.data()) == nullptr) {
            throw std::runtime_error("no temporary folder " + path_);
        }
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    const std::string& path() const { return path_; }
    std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

    /// Writes a file (and the folders above it) and returns its path.
    std::string write(std::string_view name, std::string_view content) const {
        const std::string path = *this / name;
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (descriptor < 0 || ::write(descriptor, content.data(), content.size()) < 0) {
            throw std::runtime_error("cannot write " + path);
        }
        ::close(descriptor);
        return path;
    }

 private:
    std::string path_;
};

inline std::uint64_t size_of(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

/// Bytes on disk: fewer than its size when a file has holes.
inline std::uint64_t allocated(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
}

inline bool is_root() {
    return ::geteuid() == 0;
}

}  // namespace sonde::tests
