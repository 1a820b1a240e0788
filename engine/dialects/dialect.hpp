// SPDX-License-Identifier: Apache-2.0
// Command lines of other tools: `sonde-engine NAME words…`. A dialect turns the words of its tool into plans, and the
// record of each plan into what the tool prints. It knows the two formats in schema/ and nothing else of the engine, so
// whatever it offers can be had with a plan of Sonde's own too.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::dialects {

/// Stream for text that the peer tool itself does not print. By default it is not in the tool's output.
enum class ReportStream { errors, output, none };

/// The processes of the run, known after their rendezvous.
struct SessionSetup {
    int tasks = 1;                          ///< one a process: these tools know no threads
    int nodes = 1;                          ///< numbered in the order of their lowest task
    std::vector<int> node_of = {0};         ///< task -> node
    std::vector<std::string> command = {};  ///< the words as typed, argv[0] first; without Sonde's own options
    ReportStream report_stream = ReportStream::errors;
};

/// One command line. Made in every process, so that all find the same mistakes; everything but the constructor and
/// needs_mpi() is called at the root only.
class Session {
 public:
    Session() = default;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    virtual ~Session() = default;

    /// A plan will use a backend that needs MPI (asked before the processes meet).
    virtual bool needs_mpi() const { return false; }
    /// Without a launcher the site's MPI comes first, because libraries of file formats are built with it.
    virtual bool prefers_site_mpi() const { return false; }
    /// Before the first plan: may print the tool's heading, and throw plan::PlanError when the words do not fit.
    virtual void begin(const SessionSetup& setup) = 0;
    /// The next plan as JSON text (schema/plan), or nothing when all is done. May depend on earlier plans' records; may
    /// throw plan::PlanError.
    virtual std::optional<std::string> next_plan() = 0;
    /// Each line of the record of the plan that is being run, as it is written; `type` as in schema/record. The
    /// progress lines come from another process and are not seen here.
    virtual void read_record_line(std::string_view type, const nlohmann::ordered_json& content) = 0;
    /// A plan has ended with this exit code. Plans after it are run only when it is 0 or 4 (verification mismatch).
    virtual void end_plan(int code) = 0;
    /// The end: prints the tool's summary of what was done. `code` = the worst exit code of all plans; returns the exit
    /// code of the program.
    virtual int finish_session(int code) = 0;
};

/// The words ask for the tool's help: what() is the text; exit code 0.
struct HelpRequested : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Dialect {
    std::string_view name;     ///< argv[1]
    std::string_view summary;  ///< one line for people
    /// Reads the words after the name. Throws plan::PlanError with one sentence, or Help.
    std::unique_ptr<Session> (*make_session)(const std::vector<std::string>& arguments);
};

/// All dialects, in the order they are listed to people. A new dialect is one folder and one line in list.cpp.
std::span<const Dialect* const> list_dialects();
/// The dialect of that name, or null.
const Dialect* find_dialect(std::string_view name);

}  // namespace sonde::dialects
