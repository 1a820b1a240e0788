// SPDX-License-Identifier: Apache-2.0
#include "phases/errors.hpp"

#include "phases/collectives.hpp"
#include "records/text.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

namespace sonde::phases {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// "ENOSPC" for 28, "E28" for unknown numbers.
std::string errno_name(int code) {
    static const std::map<int, const char*> names{{EPERM, "EPERM"},           {ENOENT, "ENOENT"},
                                                  {EINTR, "EINTR"},           {EIO, "EIO"},
                                                  {ENXIO, "ENXIO"},           {EBADF, "EBADF"},
                                                  {EAGAIN, "EAGAIN"},         {ENOMEM, "ENOMEM"},
                                                  {EACCES, "EACCES"},         {EBUSY, "EBUSY"},
                                                  {EEXIST, "EEXIST"},         {ENODEV, "ENODEV"},
                                                  {ENOTDIR, "ENOTDIR"},       {EISDIR, "EISDIR"},
                                                  {EINVAL, "EINVAL"},         {ENFILE, "ENFILE"},
                                                  {EMFILE, "EMFILE"},         {EFBIG, "EFBIG"},
                                                  {ENOSPC, "ENOSPC"},         {EROFS, "EROFS"},
                                                  {EDQUOT, "EDQUOT"},         {ESTALE, "ESTALE"},
                                                  {ETIMEDOUT, "ETIMEDOUT"},   {ECONNREFUSED, "ECONNREFUSED"},
                                                  {ECONNRESET, "ECONNRESET"}, {EHOSTUNREACH, "EHOSTUNREACH"},
                                                  {EMSGSIZE, "EMSGSIZE"},     {EPROTO, "EPROTO"},
                                                  {EOPNOTSUPP, "EOPNOTSUPP"}, {ENODATA, "ENODATA"},
                                                  {ESHUTDOWN, "ESHUTDOWN"},   {EREMOTEIO, "EREMOTEIO"},
                                                  {ENOTCONN, "ENOTCONN"},     {ENAMETOOLONG, "ENAMETOOLONG"},
                                                  {ENOTEMPTY, "ENOTEMPTY"},   {ELOOP, "ELOOP"},
                                                  {EMLINK, "EMLINK"},         {EXDEV, "EXDEV"}};
    const auto entry = names.find(code);
    return entry == names.end() ? "E" + std::to_string(code) : entry->second;
}

/// Advice for an error, when its name is not self-explanatory.
std::string advise_on_error(int code, const plan::Io& io) {
    switch (code) {
        case EIO:
        case EREMOTEIO:
            return "; the kernel's log on that host (dmesg) and the servers' logs say more";
        case EFBIG:
            return "; `ulimit -f` or the file system limits the size of a file";
        case EDQUOT:
            return "; the quota of this user or project is used up";
        case EMFILE:
            return "; `ulimit -n` limits the open files of a process";
        case EINVAL:
            return io.direct ? "; does this file system support direct I/O with this alignment? Try io.direct = false"
                             : "";
        default:
            return {};
    }
}

std::string describe_error(const json& error, const plan::Phase& phase) {
    const int code = error.at("errno");
    const std::string where =
        "task " + std::to_string(error.at("task").get<int>()) + " on " + error.at("host").get<std::string>();
    const auto text = [&error](const char* key) { return error.at(key).get<std::string>(); };
    const std::string offset = " at offset " + std::to_string(error.at("offset").get<std::uint64_t>());
    if (error.at("operation") == "verify") {
        return where + ": " + text("path") + offset + " holds " + text("detail");
    }
    if (code == 0) {
        return where + ": " + text("detail");
    }
    // A message of a service tells more than an errno, and the advice for file systems does not apply to it.
    const std::string detail = text("detail");
    const std::string advice = detail.empty() ? advise_on_error(code, phase.data.io) : std::string();
    const std::string reason = !detail.empty()   ? detail
                               : code == ENODATA ? "the file ends before the data that was expected"
                                                 : std::strerror(code);
    return where + ": " + text("operation") + " of " + text("path") +
           (phase.meta || text("operation") == "open" ? std::string() : offset) + " failed: " + reason + " (" +
           errno_name(code) + ")" + advice;
}

}  // namespace

json gather_errors(const RunContext& context, const plan::Phase& phase) {
    json own_errors = json::array();
    const ranks::ProcessLocation& location = context.team.location();
    if (location.is_leader()) {
        for (const ranks::ErrorSlot& slot : context.team.control().errors) {
            if (slot.state.load() == 2) {
                // The process of a simulation has the tasks of all nodes.
                const int node = slot.task < 0 ? location.node : context.tasks.node_of(slot.task);
                own_errors.push_back({{"phase", phase.id},
                                      {"task", slot.task},
                                      {"node", node},
                                      {"path", records::to_json_text(slot.path)},
                                      {"offset", slot.offset},
                                      {"operation", slot.operation},
                                      {"errno", slot.code},
                                      {"detail", records::to_json_text(slot.text)},
                                      {"phase_s", static_cast<double>(slot.at_ns) / 1e9}});
            }
        }
    }
    json errors = gather_list(context.team, own_errors);
    for (json& error : errors) {
        const auto& hosts = context.root_state.hosts;
        error["host"] = records::to_json_text(hosts.at(error.at("node").get<std::size_t>()));
    }
    return errors;
}

void write_errors(RunContext& context, const plan::Phase& phase, const json& errors) {
    for (const json& error : errors) {
        ordered_json line(error);
        const std::string sentence = describe_error(error, phase);
        if (error.at("operation") != "verify") {
            if (const int code = error.at("errno"); code != 0) {
                line["name"] = errno_name(code);
            }
            context.root_state.outcome.set(exit_failed, "phase " + phase.id + ": " + sentence);
        }
        line["text"] = sentence;
        line.erase("detail");
        context.root_state.record->write_line("error", line);
    }
}

}  // namespace sonde::phases
