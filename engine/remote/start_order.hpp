// SPDX-License-Identifier: Apache-2.0
// The start order from a hub to the node command of a host, and how the two recognize each other.
#pragma once

#include <string>
#include <vector>

namespace sonde::remote {

/// The start order of the hub for a node command.
struct StartOrder {
    int first_process = 0, process_count = 1;  ///< processes of this host
    int processes = 1, nodes = 1;              ///< of the run
    std::string host;                          ///< as in the list of the hub
    std::string job;                           ///< unique name of the run on that host
    std::string directory;                     ///< working directory
    std::vector<std::string> command;          ///< arguments of sonde-engine
    std::vector<std::string> variables;        ///< NAME=VALUE
};

std::string serialize(const StartOrder& order);
/// Throws TeamError when the text is no order.
StartOrder parse_start_order(const std::string& text);

/// The line that a node command prints before any frame, so that it is not mistaken for what a login shell prints.
std::string node_greeting();
/// The version in a greeting of any version; empty for another line.
std::string read_version(const std::string& line);

/// The program that this process runs.
std::string engine_path();

/// Number of processes of each of `hosts` hosts.
std::vector<int> divide_processes(int processes, int hosts);

}  // namespace sonde::remote
