// SPDX-License-Identifier: Apache-2.0
#include "records/writer.hpp"

#include "meters/clock.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sonde::records {

Writer::Writer(const std::string& path, std::int64_t epoch_ns) : path_(path), epoch_ns_(epoch_ns) {
    if (path.empty()) {
        return;
    }
    descriptor_ =
        path == "-" ? ::dup(STDOUT_FILENO) : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor_ < 0) {
        throw std::runtime_error("cannot write the record " + path + ": " + std::strerror(errno));
    }
}

Writer::~Writer() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

void Writer::line(const char* type, nlohmann::ordered_json content) {
    if (descriptor_ < 0) {
        return;
    }
    nlohmann::ordered_json whole;
    whole["type"] = type;
    whole["t"] = static_cast<double>(meters::Clock::monotonic_ns() - epoch_ns_) / 1e9;
    whole.update(content);
    const std::string text = whole.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    std::size_t written = 0;
    while (written < text.size()) {
        const ssize_t count = ::write(descriptor_, text.data() + written, text.size() - written);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            if (trouble_.empty()) {
                trouble_ = "a line of the record " + path_ + " could not be written: " + std::strerror(errno);
            }
            return;
        }
        written += static_cast<std::size_t>(count);
    }
}

}  // namespace sonde::records
