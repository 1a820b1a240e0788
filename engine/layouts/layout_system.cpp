// SPDX-License-Identifier: Apache-2.0
#include "layouts/layout_system.hpp"

#include "files/descriptor.hpp"
#include "plan/units.hpp"
#include "records/program_output.hpp"

#include <sys/xattr.h>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sonde::layouts {

std::optional<std::string> read_extended_attribute(const std::string& path, const char* name) {
    // A composite layout of many stripes is some ten kilobytes; the kernel allows 64 KiB.
    constexpr std::size_t max_bytes = 65536;
    std::string value(max_bytes, '\0');
    const ssize_t length = ::lgetxattr(path.c_str(), name, value.data(), value.size());
    if (length <= 0) {
        return std::nullopt;
    }
    value.resize(static_cast<std::size_t>(length));
    return value;
}

MissingLayout explain_missing_attribute(const std::string& path, const char* name) {
    std::array<char, 1> byte{};
    errno = 0;
    if (::lgetxattr(path.c_str(), name, byte.data(), byte.size()) >= 0 || errno == ERANGE) {
        return {};
    }
    return {"the attribute `" + std::string(name) + "` of a file: " + std::strerror(errno), {}};
}

std::string run_layout_program(const std::vector<std::string>& command) {
    const records::ProgramOutput output = records::run_and_read(command);
    if (output.timed_out) {
        throw std::runtime_error("`" + command[0] + " " + command[1] + "`: " + output.text);
    }
    return output.succeeded() ? output.text : std::string();
}

MissingLayout explain_program_failure(const std::vector<std::string>& command) {
    const records::ProgramOutput output = records::run_and_read(command);
    if (output.succeeded()) {
        return {};
    }
    return {"`" + command[0] + "`: " + output.last_line(),
            "have `" + command[0] + "` in PATH on the first node of the run, and the right to ask"};
}

void throw_invalid_striping(const std::string& sentence) {
    throw std::invalid_argument(sentence);
}

std::string describe_striping(const plan::Striping& requested) {
    std::string text;
    const auto add = [&text](const std::string& setting) { text += (text.empty() ? "" : ", ") + setting; };
    if (requested.count) {
        add("count " + std::to_string(*requested.count));
    }
    if (requested.size) {
        add("size " + plan::format_bytes(*requested.size));
    }
    if (!requested.pool.empty()) {
        add("pool " + requested.pool);
    }
    if (requested.start) {
        add("start " + std::to_string(*requested.start));
    }
    return text;
}

int make_file_and_stripe(const files::ConfinedDirectory& parent, const std::string& name, int flags,
                         const std::function<int(int descriptor)>& set_striping) {
    const files::Descriptor file = parent.create_file(name, 0666, flags);
    if (*file < 0) {
        return -*file;
    }
    const int error = set_striping(*file);
    if (error != 0) {
        parent.unlink(name);
    }
    return error;
}

}  // namespace sonde::layouts
