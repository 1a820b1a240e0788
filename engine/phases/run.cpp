// SPDX-License-Identifier: Apache-2.0
#include "phases/run.hpp"

#include "phases/extent.hpp"
#include "phases/phase.hpp"
#include "phases/prepare.hpp"
#include "plan/parse.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"

#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

namespace sonde::phases {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text.data();
}

void make_directories(const Layout& layout) {
    for (const std::string& directory : layout.directories()) {
        if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
            throw EnvironmentError("cannot make " + directory + ": " + std::strerror(errno));
        }
    }
}

/// The plan's trees, and those of earlier runs in the same directory. A tree whose place is taken already is not ours,
/// unless an earlier run has left it.
std::vector<TreeRule> rules_at(const std::string& directory, const plan::Plan& plan) {
    std::vector<TreeRule> rules = rules_of(plan);
    const std::optional<Manifest> before = Manifest::load(directory);
    const std::vector<TreeRule> earlier = before ? before->trees.rules : std::vector<TreeRule>{};
    for (TreeRule& rule : rules) {
        const patterns::TreeShape shape(rule.tree);
        for (std::uint64_t copy = 0; rule.fresh && copy < shape.copies(); ++copy) {
            struct stat info {};
            rule.fresh = ::lstat((directory + "/" + shape.top(copy)).c_str(), &info) != 0;
        }
        const auto left = std::find_if(earlier.begin(), earlier.end(),
                                       [&rule](const TreeRule& one) { return one.tree.top == rule.tree.top; });
        rule.made = rule.fresh || (left != earlier.end() && left->made);
    }
    for (const TreeRule& rule : earlier) {
        if (std::find(rules.begin(), rules.end(), rule) == rules.end()) {
            rules.push_back(rule);
            rules.back().fresh = false;
        }
    }
    return rules;
}

/// What the root finds out before anybody starts; sent to all as JSON.
json inspect(const plan::Plan& plan, const RunOptions& options, const TaskMap& tasks, std::uint64_t memory,
             int first_phase, Manifest& manifest) {
    if (plan.tasks.used > tasks.all()) {
        throw plan::PlanError("plan: tasks.used is " + std::to_string(plan.tasks.used) + ", but there are only " +
                              std::to_string(tasks.all()) + " tasks");
    }
    for (const plan::Phase& phase : plan.phases) {
        if (phase.shift.by == plan::ShiftBy::list &&
            phase.shift.owners.size() != static_cast<std::size_t>(tasks.tasks())) {
            throw plan::PlanError("plan: phase \"" + phase.id + "\" names " +
                                  std::to_string(phase.shift.owners.size()) + " shift.owners, but there are " +
                                  std::to_string(tasks.tasks()) + " tasks");
        }
    }
    check_extent(plan, tasks, memory);
    json facts{{"files", needs_files(plan)}, {"directory", plan.target.path}, {"memory_backed", false}};
    if (facts.at("files").get<bool>()) {
        check_directory(plan.target.path);
    }
    check_backends(plan, true);
    if (!facts.at("files").get<bool>()) {
        return facts;
    }
    const records::FileSystem fs = records::describe_file_system(plan.target.path);
    facts["memory_backed"] = fs.memory_backed;
    facts["file_system"] = fs.type;
    if (first_phase > 0) {
        const std::string name = plan.target.directory.empty() ? "sonde-" + options.run_id : plan.target.directory;
        const std::string directory = plan.target.path + "/" + name;
        const std::optional<Manifest> found = Manifest::load(directory);
        if (!found) {
            throw EnvironmentError("stage " + std::to_string(options.stage) +
                                   " continues an earlier stage, but there is no manifest in " + directory);
        }
        if (found->tasks.threads != tasks.threads ||
            found->tasks.node_of_process.size() != tasks.node_of_process.size()) {
            throw EnvironmentError("stage " + std::to_string(options.stage) +
                                   " must have as many tasks as the stage before (" +
                                   std::to_string(found->tasks.tasks()) + ")");
        }
        manifest.data = found->data;
        manifest.trees = found->trees;
        manifest.found = found->found;
        Manifest here;
        here.stamp_this_process();
        if (here.host == found->host && here.boot == found->boot) {
            manifest.epoch_ns = found->epoch_ns;
        }
        facts["directory"] = directory;
    } else {
        const Footprint need = footprint(plan, tasks, memory);
        check_target(plan, need.bytes, need.files);
        if (plan.data.files.in_place()) {
            make_directories(Layout(plan.target.path, plan.data.files, tasks));
            return facts;
        }
        const RunDirectory made = make_run_directory(plan, options.run_id);
        facts["directory"] = made.path;
        manifest.found = made.found;
        manifest.trees.rules = rules_at(made.path, plan);
    }
    manifest.has_data = plan.has_data;
    manifest.run = options.run_id;
    manifest.files = plan.data.files;
    manifest.tasks = tasks;
    manifest.stamp_this_process();
    try {
        manifest.save(facts.at("directory"));
        make_directories(Layout(facts.at("directory"), plan.data.files, tasks));
    } catch (...) {
        if (!manifest.found) {
            remove_run(facts.at("directory"), manifest, false);
        }
        throw;
    }
    return facts;
}

/// Facts about every node, gathered at the root.
json gather_nodes(ranks::Team& team, const std::string& directory) {
    json mine = json::array();
    if (team.place().leader()) {
        json node = records::describe_node(directory);
        node["node"] = team.place().node;
        node["clock_offset_ns"] = team.clock_offset_ns();
        node["clock_error_ns"] = team.clock_error_ns();
        mine.push_back(node);
    }
    const std::string all = team.reduce(mine.dump(-1, ' ', false, json::error_handler_t::replace),
                                        [](const std::string& a, const std::string& b) {
                                            json joined = json::parse(a);
                                            const json more = json::parse(b);
                                            joined.insert(joined.end(), more.begin(), more.end());
                                            return joined.dump();
                                        });
    return team.place().root() ? json::parse(all) : json::array();
}

void write_run_line(const Context& context, const std::string& started) {
    const ranks::Place& place = context.team.place();
    ordered_json line{{"schema", "sonde-record/1"},
                      {"id", context.options.run_id},
                      {"engine", records::engine_version()},
                      {"started", started},
                      {"command", records::json_text(context.options.command)},
                      {"launch", context.team.description()},
                      {"tasks", context.tasks.tasks()},
                      {"processes", place.processes},
                      {"threads", context.tasks.threads},
                      {"nodes", place.nodes},
                      {"clock", context.board->clock.source()},
                      {"directory", records::json_text(context.directory)}};
    if (context.options.stage >= 0) {
        line["stage"] = context.options.stage;
    }
    line["plan"] = ordered_json::parse(context.plan.canonical);
    context.record->line("run", line);
}

/// The part of the removal that is the root's alone, and all of it when the others are gone.
Removal remove_alone(const Context& context) {
    const plan::Target& target = context.plan.target;
    if (!context.makes_files || target.keep || context.in_place()) {
        return {};
    }
    if (!target.use_existing) {
        return remove_run(context.directory, context.manifest, false);
    }
    Manifest own = context.manifest;
    std::erase_if(own.trees.rules, [](const TreeRule& rule) { return !rule.fresh; });
    Removal removal;
    if (!own.trees.rules.empty()) {
        removal = remove_trees(context.directory, own, false);
    }
    if (!removal.left.empty()) {
        return removal;
    }
    if (context.manifest.found) {
        Manifest::remove(context.directory);  // the data stays, and `clean` has nothing to do here
    }
    return removal;
}

/// Files that lie in place are removed by phases of the plan; when the run did not come so far, what its writing phases
/// made anew is removed here by the processes that made it. How many files.
std::uint64_t remove_unfinished(const Context& context) {
    std::uint64_t removed = 0;
    const int first = context.team.place().process * context.tasks.threads;
    for (std::size_t i = 0; !context.plan.target.keep && i < context.begun; ++i) {
        const plan::Phase& phase = context.plan.phases[i];
        const Layout layout(context.directory, phase.data.files, context.tasks);
        const bool made = phase.op == plan::Op::write && phase.open == plan::Open::truncate;
        for (int task = first; made && task < std::min(first + context.tasks.threads, context.tasks.tasks()); ++task) {
            removed += layout.first_of_file(task) && ::unlink(layout.path(task, 0).c_str()) == 0 ? 1U : 0U;
        }
    }
    return removed;
}

/// Removes what the run made, all processes together. The root says what is left.
Removal clean_up(Context& context, int code) {
    if (context.makes_files && context.in_place()) {
        const bool unfinished = code != exit_done && code != exit_mismatch;
        return {unfinished ? remove_unfinished(context) : 0, 0, 0, {}};
    }
    if (!context.makes_files || context.plan.target.keep || context.plan.target.use_existing) {
        return context.root() ? remove_alone(context) : Removal{};
    }
    Removal removal;
    const ranks::Place& place = context.team.place();
    const int first = place.process * context.tasks.threads;
    context.board->files_removed.fetch_add(
        remove_files(context.directory, context.manifest, first, first + context.tasks.threads, false).files +
        remove_items(context.directory, context.manifest, first, first + context.tasks.threads));
    context.team.all(true);
    const std::string sum = context.team.reduce(
        std::to_string(context.board->files_removed.load()),
        [](const std::string& a, const std::string& b) { return std::to_string(std::stoull(a) + std::stoull(b)); });
    if (context.root()) {
        removal = remove_alone(context);
        removal.files += std::stoull(sum);
    }
    return removal;
}

/// The end line of a run that came to nothing.
ordered_json failed_end(int code, const std::string& text, std::int64_t epoch) {
    return {{"status", "failed"},
            {"exit_code", code},
            {"seconds", static_cast<double>(meters::Clock::monotonic_ns() - epoch) / 1e9},
            {"text", records::json_text(text)}};
}

/// The one line for the user, when there is anything to say.
void speak(const Outcome& outcome, const Removal& removal, const std::string& trouble) {
    std::string line = outcome.code == exit_done ? std::string() : outcome.text;
    const auto add = [&line](const std::string& more) { line += (line.empty() ? "" : "; ") + more; };
    for (std::size_t i = 0; i < std::min<std::size_t>(2, removal.left.size()); ++i) {
        add(removal.left[i]);
    }
    if (removal.left.size() > 2) {
        add("and " + std::to_string(removal.left.size() - 2) + " more such, see the record");
    }
    if (!trouble.empty()) {
        add(trouble);
    }
    if (!line.empty()) {
        records::complain(line);
    }
}

void arm_time_limit(const plan::Plan& plan) {
    itimerval timer{};  // zero: disarmed, as after a plan before that had a limit
    if (plan.time_limit) {
        timer.it_value.tv_sec = *plan.time_limit / 1'000'000'000;
        timer.it_value.tv_usec = *plan.time_limit % 1'000'000'000 / 1000 + 1;
    }
    setitimer(ITIMER_REAL, &timer, nullptr);
}

/// Shared memory for the board: that of the run before when there is enough of it.
std::byte* board_memory(const Context& context, std::size_t bytes) {
    Ground once;
    Ground& ground = context.options.ground != nullptr ? *context.options.ground : once;
    if (ground.bytes < bytes) {
        ground = {context.team.shared(bytes), bytes};
    }
    return ground.memory;
}

/// Whether the plan says to leave a phase out as things are. All processes ask.
bool left_out(const Context& context, const plan::Phase& phase, std::int64_t begin_ns) {
    if (phase.unless_mismatch &&
        context.team.maximum(context.root() && context.outcome.code == exit_mismatch ? 1 : 0) != 0) {
        return true;
    }
    if (!context.plan.begin_limit || plan::on_files(phase.op)) {
        return false;
    }
    const bool late = context.root() && meters::Clock::monotonic_ns() - begin_ns >= *context.plan.begin_limit;
    if (context.team.maximum(late ? 1 : 0) == 0) {
        return false;
    }
    if (context.root()) {
        context.record->line(
            "finding",
            {{"id", "not_begun"},
             {"phase", phase.id},
             {"severity", "info"},
             {"text", "phase " + phase.id + " was not begun: the run had lasted longer than limits.begin allows"}});
    }
    return true;
}

void run_phases(Context& context, const std::vector<int>& stage) {
    const std::int64_t begin_ns = meters::Clock::monotonic_ns();
    HalfRates half;
    for (std::size_t i = 0; i < context.plan.phases.size(); ++i) {
        if (context.options.stage >= 0 && stage[i] != context.options.stage) {
            continue;
        }
        if (context.team.maximum(context.team.control().stop.load()) != 0) {
            if (context.root()) {
                const bool limit = context.team.control().stop.load() == ranks::NodeControl::quit_time_limit;
                context.outcome.set(
                    exit_interrupted, "interrupted",
                    (limit ? std::string("the time limit of the run ended it") : std::string("interrupted")) +
                        " before phase " + context.plan.phases[i].id + "; finished phases are kept");
            }
            return;
        }
        if (left_out(context, context.plan.phases[i], begin_ns)) {
            continue;
        }
        context.begun = i + 1;
        if (!run_phase(context, i, half)) {
            return;
        }
    }
}

}  // namespace

std::vector<int> stages_of(const plan::Plan& plan) {
    std::vector<int> stages;
    int stage = 0;
    for (const plan::Phase& phase : plan.phases) {
        stage += phase.separate_process ? 1 : 0;
        stages.push_back(stage);
    }
    return stages;
}

std::string lost_sentence(const Context& context, const std::string& when) {
    const int process = context.team.control().lost_process.load();
    const auto& nodes = context.tasks.node_of_process;
    std::string who = "a process of another node died or cannot be reached any more";
    if (process >= 0 && process < static_cast<int>(nodes.size())) {
        const auto node = static_cast<std::size_t>(nodes[static_cast<std::size_t>(process)]);
        who = "process " + std::to_string(process) +
              (node < context.hosts.size() ? " on " + records::json_text(context.hosts[node]) : std::string()) +
              " died";
    }
    return who + " " + when + "; finished phases are kept";
}

int execute(const plan::Plan& plan, const RunOptions& options, ranks::Team& team) {
    std::int64_t epoch = meters::Clock::monotonic_ns();
    const std::string started = utc_now();
    const std::vector<int> stages = stages_of(plan);
    const int first_stage = std::max(0, options.stage);
    const bool last_stage = options.stage < 0 || options.stage == stages.back();
    TaskMap tasks{plan.tasks.threads, team.place().node_of, plan.tasks.used};
    Context context{plan, options, team, tasks, {}, 0, nullptr, nullptr, {}, {}, {}, false, true};
    context.node_memory = team.maximum(records::node_memory_bytes());
    arm_time_limit(plan);

    std::unique_ptr<records::Writer> writer;
    json facts;
    if (team.place().root()) {
        try {
            writer = std::make_unique<records::Writer>(options.record, epoch);
            writer->tell(options.listener);
            plan::Bytes largest = 1;
            for (const plan::Phase& phase : plan.phases) {
                largest = std::max(largest, phase.data.access.transfer);
            }
            context.manifest.period = payload::period_for(plan.phases.front().data.payload, largest);
            context.manifest.epoch_ns = epoch;
            facts = inspect(plan, options, tasks, context.node_memory, first_stage, context.manifest);
            epoch = context.manifest.epoch_ns;
            writer->set_epoch(epoch);
        } catch (const plan::PlanError& error) {
            facts = {{"error", error.what()}, {"code", exit_plan}};
        } catch (const std::exception& error) {
            facts = {{"error", error.what()}, {"code", exit_environment}};
        }
    }
    facts = json::parse(team.broadcast(team.place().root() ? facts.dump(-1, ' ', false, json::error_handler_t::replace)
                                                           : std::string()));
    context.record = writer.get();
    if (facts.contains("error")) {
        if (team.place().root()) {
            records::complain(facts.at("error").get<std::string>());
            if (writer && options.stage > 0) {
                writer->line("end", failed_end(facts.at("code"), facts.at("error"), epoch));
            } else if (writer) {
                writer->discard();  // nothing was begun, so there is nothing to record
            }
        }
        return facts.at("code");
    }
    context.makes_files = facts.at("files");
    context.memory_backed = facts.at("memory_backed");
    context.file_system = facts.value("file_system", std::string());
    context.directory = facts.at("directory");
    const json common =
        json::parse(team.broadcast(team.place().root() ? json{{"period", context.manifest.period},
                                                              {"data", context.manifest.data.to_json()},
                                                              {"trees", context.manifest.trees.to_json()}}
                                                             .dump()
                                                       : std::string()));
    context.manifest.period = common.at("period");
    context.manifest.data = Dataset::from_json(common.at("data"));
    context.manifest.files = plan.data.files;
    context.manifest.tasks = tasks;
    context.manifest.has_data = plan.has_data;
    if (!team.place().root()) {
        context.manifest.trees = Forest::from_json(common.at("trees"), tasks.all());
    }

    const bool lanes =
        std::any_of(plan.phases.begin(), plan.phases.end(), [](const auto& p) { return p.op == plan::Op::duplex; });
    const int streams = team.place().locals * tasks.threads * (lanes ? 2 : 1);
    context.board = reinterpret_cast<Board*>(board_memory(context, Board::bytes_for(streams, plan.observe.max_slices)));
    if (team.place().leader()) {
        new (context.board) Board;
        context.board->max_slices = plan.observe.max_slices;
        context.board->clock = meters::Clock::calibrate();
    }
    team.all(true);
    team.count_progress(reinterpret_cast<const std::byte*>(&context.board->meter(0).live),
                        meters::StreamMeter::bytes_for(plan.observe.max_slices), &context.board->streams);

    const json nodes = gather_nodes(team, context.makes_files ? context.directory : std::string("/"));
    std::unique_ptr<Monitor> monitor;
    if (team.place().root()) {
        write_run_line(context, started);
        for (const json& node : nodes) {
            context.hosts.push_back(records::bytes_of(node.value("host", std::string())));
            writer->line("node", ordered_json(node));
        }
        std::vector<std::string> ids;
        for (const plan::Phase& phase : plan.phases) {
            ids.push_back(phase.id);
        }
        writer->take_turns(&context.board->turns, records::Writer::Role::engine);
        monitor = std::make_unique<Monitor>(*context.board, team, options.record, epoch, plan.observe.progress, ids);
    }
    try {
        run_phases(context, stages);
    } catch (const std::exception& error) {
        if (team.place().root()) {
            remove_alone(context);
            context.board->finished.store(1);
            writer->line("end", failed_end(exit_environment, error.what(), epoch));
        }
        throw;  // the end of this process's team tells the others
    }

    const bool lost = !team.all(true);
    Outcome& outcome = context.outcome;
    Removal removal;
    const std::string verdict =
        lost ? std::string() : team.broadcast(team.place().root() ? std::to_string(outcome.code) : std::string());
    const int code = lost ? exit_failed : std::stoi(verdict);
    // Later stages are not started after anything but success, so nobody else would remove the files.
    const bool ends_here = last_stage || code != exit_done;
    if (ends_here && !lost) {
        removal = clean_up(context, code);
    }
    if (!team.place().root()) {
        return code;
    }
    if (lost) {
        removal = remove_alone(context);
        outcome.set(exit_failed, "failed", lost_sentence(context, "at the end of the run"));
    }
    if (code == exit_done && last_stage && context.makes_files && plan.target.keep && !plan.target.keep_manifest) {
        Manifest::remove(context.directory);
    }
    context.board->finished.store(1);
    if (ends_here) {
        ordered_json end{{"status", outcome.status},
                         {"exit_code", outcome.code},
                         {"seconds", static_cast<double>(meters::Clock::monotonic_ns() - epoch) / 1e9}};
        if (!outcome.text.empty()) {
            end["text"] = outcome.text;
        }
        end["files_removed"] = removal.files;
        end["files_left"] = ordered_json::array();
        for (const std::string& left : removal.left) {
            end["files_left"].push_back(records::json_text(left));
        }
        writer->line("end", end);
    }
    monitor.reset();
    speak(outcome, removal, writer->trouble());
    return outcome.code == exit_done && !writer->trouble().empty() ? exit_environment : outcome.code;
}

}  // namespace sonde::phases
