// SPDX-License-Identifier: Apache-2.0
#include "main/commands.hpp"
#include "phases/outcome.hpp"
#include "records/text.hpp"
#include "remote/hub.hpp"

#include <algorithm>
#include <sstream>

namespace sonde {
namespace {

std::vector<std::string> split_text(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        if (!part.empty()) {
            parts.push_back(part);
        }
    }
    return parts;
}

/// Empty when the request can be started, else one sentence.
std::string explain_error(const remote::SshRequest& request) {
    for (auto host = request.hosts.begin(); host != request.hosts.end(); ++host) {
        if (host->front() == '-') {
            return "--hosts: " + *host + " is no host name: it begins with a dash";
        }
        if (std::find(host + 1, request.hosts.end(), *host) != request.hosts.end()) {
            return "--hosts: " + *host + " stands there twice; give it more of --processes instead";
        }
    }
    if (request.hosts.empty() || request.shell.empty() || request.command.empty()) {
        return request.hosts.empty()   ? "--hosts names no host"
               : request.shell.empty() ? "--shell names no program"
                                       : "a command is missing after the options of ssh, like run plan.json";
    }
    if (request.processes < static_cast<int>(request.hosts.size())) {
        return std::to_string(request.processes) + " processes cannot be divided among " +
               std::to_string(request.hosts.size()) + " hosts: ask for one a host at least";
    }
    return {};
}

}  // namespace

int command_ssh(const SshArguments& arguments) {
    remote::SshRequest request{split_text(arguments.hosts, ','), arguments.processes, split_text(arguments.shell, ' '),
                               arguments.command};
    if (const std::string error = explain_error(request); !error.empty()) {
        records::print_error(error);
        return phases::exit_plan;
    }
    return remote::run_over_ssh(request);
}

}  // namespace sonde
