// SPDX-License-Identifier: Apache-2.0
#include "layouts/gpfs_disks.hpp"

#include "records/program_output.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>

namespace sonde::layouts {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

/// "%3A" is a colon in a field.
std::string decode_field(std::string_view find_field) {
    std::string plain;
    for (std::size_t position = 0; position < find_field.size(); ++position) {
        std::uint8_t code = 0;
        constexpr std::size_t digits = 2;
        const std::string_view hex = find_field.substr(std::min(position + 1, find_field.size()), digits);
        const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
        if (find_field[position] == '%' && hex.size() == digits && error == std::errc() && end == hex.data() + digits) {
            plain += static_cast<char>(code);
            position += digits;
        } else {
            plain += find_field[position];
        }
    }
    return plain;
}

std::vector<std::string> split_fields(std::string_view line) {
    std::vector<std::string> fields;
    for (std::size_t position = 0; position <= line.size();) {
        const std::size_t end = std::min(line.find(':', position), line.size());
        fields.push_back(decode_field(line.substr(position, end - position)));
        position = end + 1;
    }
    return fields;
}

/// The rows of one program's -Y, each by the names of the header above it.
std::vector<Fields> parse_rows(std::string_view text, std::string_view program) {
    constexpr std::size_t mark = 2;  // "mmlsdisk::HEADER:…", "mmlsdisk::0:…"
    std::vector<Fields> rows;
    std::vector<std::string> names;
    for (std::size_t position = 0; position < text.size();) {
        const std::size_t end = std::min(text.find('\n', position), text.size());
        const std::vector<std::string> fields = split_fields(text.substr(position, end - position));
        position = end + 1;
        if (fields.size() <= mark || fields[0] != program) {
            continue;
        }
        if (fields[mark] == "HEADER") {
            names = fields;
            continue;
        }
        Fields& row = rows.emplace_back();
        for (std::size_t k = mark + 1; k < std::min(fields.size(), names.size()); ++k) {
            row[names[k]] = fields[k];
        }
    }
    return rows;
}

/// "`mmlsdisk`: File system fs9 is not known …": its programs begin their sentences with their name.
std::string describe_gpfs_failure(const std::string& program, std::string_view text) {
    const std::string name = program + ": ";
    text.remove_prefix(text.starts_with(name) ? name.size() : 0);
    return records::describe_failure(program, std::string(text));
}

const std::string& find_field(const Fields& row, std::string_view name) {
    static const std::string none;
    const auto match = row.find(name);
    return match == row.end() ? none : match->second;
}

}  // namespace

GpfsDisks parse_gpfs_disks(std::string_view mmlsdisk, std::string_view mmlsnsd) {
    std::map<std::string, std::string> servers;
    for (const Fields& row : parse_rows(mmlsnsd, "mmlsnsd")) {
        servers[find_field(row, "diskName")] = find_field(row, "serverList");
    }
    GpfsDisks disks;
    for (const Fields& row : parse_rows(mmlsdisk, "mmlsdisk")) {
        const std::string& name = find_field(row, "nsdName");
        const std::string& data = find_field(row, "data");
        const bool holds_data = data == "yes" || data == "Yes";
        if (name.empty() || !holds_data) {
            continue;
        }
        const auto served = servers.find(name);
        const bool has_server = served != servers.end() && !served->second.empty();
        disks.disks_of_pool[find_field(row, "storagePool")].push_back(has_server ? name + "@" + served->second : name);
    }
    if (disks.disks_of_pool.empty()) {
        disks.why_unknown = "what `mmlsdisk` says names no disk that holds data";
    }
    return disks;
}

std::string explain_unknown_disk(const std::string& pool, const GpfsDisks& disks) {
    const auto match = disks.disks_of_pool.find(pool);
    if (match == disks.disks_of_pool.end()) {
        return "which disks (NSDs) pool " + pool + " has is not known" +
               (disks.why_unknown.empty() ? "" : ": " + disks.why_unknown);
    }
    const std::size_t count = match->second.size();
    return "GPFS tells no user which of the " + std::to_string(count) + (count == 1 ? " disk" : " disks") +
           " (NSDs) of pool " + pool + " holds which block" +
           (disks.why_no_servers.empty() ? "" : "; nor is it known who serves them: " + disks.why_no_servers);
}

GpfsOutput run_gpfs_program(const std::vector<std::string>& command) {
    GpfsOutput answer;
    for (const char* folder : {"", "/usr/lpp/mmfs/bin/"}) {
        std::vector<std::string> arguments = command;
        arguments[0] = folder + arguments[0];
        const records::ProgramOutput output = records::run_and_read(arguments);
        if (output.succeeded() || output.timed_out) {
            return {output.succeeded(), output.timed_out, output.text};
        }
        // If the program exists, its own message explains the error; if not, a second "no such file" adds nothing.
        if (answer.text.empty() || output.exit_code > 0) {
            answer.text = output.first_line();
        }
    }
    return answer;
}

GpfsDisks query_gpfs_disks(const std::string& device) {
    const GpfsOutput disks = run_gpfs_program({"mmlsdisk", device, "-Y"});
    if (!disks.ok) {
        GpfsDisks unknown;
        unknown.why_unknown = describe_gpfs_failure("mmlsdisk", disks.text);
        return unknown;
    }
    const GpfsOutput nsds = run_gpfs_program({"mmlsnsd", "-f", device, "-Y"});
    GpfsDisks parsed = parse_gpfs_disks(disks.text, nsds.ok ? nsds.text : "");
    if (!nsds.ok) {
        parsed.why_no_servers = describe_gpfs_failure("mmlsnsd", nsds.text);
    }
    return parsed;
}

}  // namespace sonde::layouts
