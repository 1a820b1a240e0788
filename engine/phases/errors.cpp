// SPDX-License-Identifier: Apache-2.0
#include "phases/errors.hpp"

#include "phases/gather.hpp"
#include "records/errno_name.hpp"
#include "records/text.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace sonde::phases {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// What to do about an error, where there is something to say that its name does not.
std::string advice(int code, const plan::Io& io) {
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

std::string sentence_of(const json& error, const plan::Phase& phase) {
    const int code = error.at("errno");
    const std::string where =
        "task " + std::to_string(error.at("task").get<int>()) + " on " + error.at("host").get<std::string>();
    const auto text = [&error](const char* key) { return error.at(key).get<std::string>(); };
    const std::string offset = " at offset " + std::to_string(error.at("offset").get<std::uint64_t>());
    if (error.at("what") == "verify") {
        return where + ": " + text("path") + offset + " holds " + text("detail");
    }
    if (code == 0) {
        return where + ": " + text("detail");
    }
    const std::string reason =
        code == ENODATA ? "the file ends before the data that was expected" : std::strerror(code);
    return where + ": " + text("what") + " of " + text("path") +
           (phase.meta || text("what") == "open" ? std::string() : offset) + " failed: " + reason + " (" +
           records::errno_name(code) + ")" + advice(code, phase.data.io);
}

}  // namespace

json gather_errors(const Context& context, const plan::Phase& phase) {
    json mine = json::array();
    const ranks::Place& place = context.team.place();
    if (place.leader()) {
        for (const ranks::ErrorSlot& slot : context.team.control().errors) {
            if (slot.state.load() == 2) {
                mine.push_back({{"phase", phase.id},
                                {"task", slot.task},
                                {"node", place.node},
                                {"host", records::json_text(place.host)},
                                {"path", records::json_text(slot.path)},
                                {"offset", slot.offset},
                                {"what", slot.what},
                                {"errno", slot.code},
                                {"detail", records::json_text(slot.text)},
                                {"phase_s", static_cast<double>(slot.at_ns) / 1e9}});
            }
        }
    }
    return gather(context.team, mine);
}

void write_errors(Context& context, const plan::Phase& phase, const json& errors) {
    for (const json& error : errors) {
        ordered_json line(error);
        const std::string sentence = sentence_of(error, phase);
        if (error.at("what") != "verify") {
            if (const int code = error.at("errno"); code != 0) {
                line["name"] = records::errno_name(code);
            }
            context.at_root.outcome.set(exit_failed, "phase " + phase.id + ": " + sentence);
        }
        line["text"] = sentence;
        line.erase("detail");
        context.at_root.record->line("error", line);
    }
}

}  // namespace sonde::phases
