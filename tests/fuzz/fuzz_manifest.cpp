// SPDX-License-Identifier: Apache-2.0
// Any text is either a manifest or refused with an exception, and names in a manifest never lead out of its directory.
#include "files/file_map.hpp"
#include "files/manifest.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

namespace {

std::optional<sonde::files::Manifest> parse(const std::string& text) {
    try {
        return sonde::files::Manifest::parse(text);
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto manifest = parse({reinterpret_cast<const char*>(data), size});
    if (!manifest) {
        return 0;
    }
    const sonde::files::FileMap map("/run", manifest->files, manifest->tasks);
    for (const int task : {0, manifest->tasks.tasks() - 1}) {
        if (map.file_name(task, 0).find('/') != std::string::npos ||
            map.get_file_folder(task).find("..") != std::string::npos) {
            std::abort();
        }
    }
    for (const sonde::files::TreeRule& rule : manifest->trees.rules) {
        if (rule.tree.top.find('/') != std::string::npos || rule.tree.top == "..") {
            std::abort();
        }
    }
    return 0;
}
