// SPDX-License-Identifier: Apache-2.0
#include "system/given_file.hpp"

#include "system/site.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace sonde::simulate {

std::string text_of_file(const std::string& path, const char* what) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) {
        throw SiteError(std::string(what) + " " + path + " cannot be read: " + std::strerror(errno));
    }
    return text.str();
}

}  // namespace sonde::simulate
