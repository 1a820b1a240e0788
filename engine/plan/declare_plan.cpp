// SPDX-License-Identifier: Apache-2.0
// Members of the plan itself, of target, tasks, observe and limits.
#include "plan/declare_plan.hpp"

#include "plan/declare_data.hpp"
#include "plan/declare_meta.hpp"
#include "plan/value_kinds.hpp"

namespace sonde::plan {
namespace {

constexpr const char* plan_format = "sonde-plan/2";

/// The version of the format.
struct FormatKind : PlainKind<std::string> {
    static std::string read(const Reader& in, const char* key) {
        const std::string format = in.text(key);
        if (format != plan_format) {
            in.fail(key, "is \"" + format + "\", but this engine reads \"" + plan_format + "\"");
        }
        return format;
    }
    static ordered_json json_schema() { return {{"const", plan_format}}; }
};

/// Paths of members whose values a calibration determines.
struct CalibratedKind : PlainKind<std::vector<std::string>> {
    static std::vector<std::string> read(const Reader& in, const char* key) {
        for (const std::string& name : in.texts(key)) {
            if (name != "data.access.volume" && name != "data.files.count") {
                in.fail(key, "names \"" + name + "\", but may name data.access.volume and data.files.count only");
            }
        }
        return {};
    }
    static ordered_json json_schema() {
        return {{"type", "array"},
                {"items", {{"enum", {"data.access.volume", "data.files.count"}}}},
                {"uniqueItems", true}};
    }
};

void describe_tasks(Visitor& visitor, Tasks& tasks) {
    visitor.member("processes", tasks.processes, IntegerKind(1, 65536),
                   "without a launcher the engine forks them; under a launcher leave it out");
    visitor.member("threads", tasks.threads, IntegerKind(1, 4096), "task threads per process");
    visitor.member("pin", tasks.pin, FlagKind{}, "bind task threads to cores");
    visitor.member("active", tasks.active, IntegerKind(1, 1 << 28),
                   "number of tasks that work, the first ones; the others only take part in barriers", unset);
}

void describe_observe(Visitor& visitor, Observe& observe) {
    visitor.member("slice", observe.slice, DurationKind{},
                   "first width of a time slice; it doubles whenever max_slices are used");
    visitor.member("max_slices", observe.max_slices, IntegerKind(16, 65536), "limit of the number of slices");
    visitor.member("progress", observe.progress, DurationKind{}, "between progress lines; 0 = none");
}

void describe_limits(Visitor& visitor, Plan& plan) {
    visitor.member("time", plan.time_limit, DurationKind{},
                   "the run ends after this time; finished phases are in the record");
    visitor.member("begin", plan.begin_limit, DurationKind{}, "after this time no phase begins that reads or writes");
}

void describe_comments(Visitor& visitor) {
    std::vector<std::string> comment;
    visitor.member("source", comment, CommentKind{}, "where the plan comes from, for readers", unset);
    visitor.member("notes", comment, CommentKind{}, "comments, for readers", unset);
    visitor.member(
        "calibrated", comment, CalibratedKind{},
        "members, here and in phases, whose values a calibration on the machine determined: the amount of "
        "work for a long enough run. They do not distinguish plans, so that newly calibrated runs are in one "
        "history",
        unset);
}

}  // namespace

void describe(Visitor& visitor, Striping& striping) {
    constexpr std::int64_t most_targets = 65534;
    constexpr TextRule pool_name{
        .accepts =
            [](const std::string& pool) { return pool.find_first_of(std::string("\0 /\n", 4)) == std::string::npos; },
        .error_text = "must be one name without spaces and '/'",
        .min_length = 1};
    visitor.member("count", striping.count, IntegerKind(-1, most_targets), "targets of a file; -1 is all");
    visitor.when_reading([&striping](const Reader& in) {
        if (striping.count == 0) {
            in.fail("count", "is 0: say how many targets a file gets, or -1 for all");
        }
    });
    visitor.member("size", striping.size, BytesKind{}, "stripe size in bytes; a multiple of 64 KiB");
    visitor.when_reading([&striping](const Reader& in) {
        constexpr std::int64_t step = 65536;
        if (striping.size && (*striping.size == 0 || *striping.size % step != 0 || *striping.size > UINT32_MAX)) {
            in.fail("size", "must be a multiple of 64 KiB below 4 GiB");
        }
    });
    visitor.member("pool", striping.pool, TextKind(pool_name), "name of the pool of the targets; BeeGFS: its number",
                   unset);
    visitor.member("start", striping.start, IntegerKind(0, most_targets),
                   "index of the target that gets the first byte (Lustre)");
    visitor.when_reading([&striping](const Reader& in) {
        in.reject_unknown_members();
        if (!striping.count && !striping.size && striping.pool.empty() && !striping.start) {
            in.fail("", "says nothing: give it count, size, pool or start, or leave it out");
        }
    });
}

void describe(Visitor& visitor, TargetSettings& target) {
    constexpr TextRule path_rule{
        .accepts = [](const std::string& path) { return !path.empty() && path.find('\0') == std::string::npos; },
        .error_text = "must name a directory"};
    constexpr TextRule name_rule{
        .accepts =
            [](const std::string& name) {
                return name != "." && name != ".." && name.find_first_of(std::string("/\0", 2)) == std::string::npos;
            },
        .error_text = "must be one name without '/': it is made below target.path and removed afterwards"};
    visitor.member("path", target.path, TextKind(path_rule),
                   "an existing directory on the file system under test, s3://bucket/prefix for backend s3, or with "
                   "device a block device",
                   required);
    visitor.member("device", target.device, FlagKind{},
                   "path is a block device, and the tasks access its bytes without a file system; a run that writes "
                   "also needs --allow-device");
    visitor.member("directory", target.directory, TextKind(name_rule),
                   "directory below path that the run creates and removes; default sonde-<run id>", unset);
    visitor.member("keep", target.keep, FlagKind{}, "keep the files after the run");
    visitor.member("use_existing", target.use_existing, FlagKind{}, "the directory and data files may already exist");
    visitor.member("keep_manifest", target.keep_manifest, FlagKind{},
                   "keep: also keep the manifest, so that `clean` can remove the files later; false: the files then "
                   "belong to the user");
    visitor.member("min_free", target.min_free, BytesKind{}, "free space required beyond the volume");
    visitor.member("full_stripe", target.full_stripe, BytesKind{}, "bytes, for the label of unaligned access");
    visitor.table("striping", target.striping,
                  "striping of new files (Lustre, BeeGFS, CephFS, a mount of Sonde); the file system chooses absent "
                  "members. The record states the layout that it chose (`layout`)",
                  true);
    visitor.table(
        "s3", target.s3,
        "S3 service of the target. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from "
        "the credentials file of AWS tools",
        true);
}

void describe(Visitor& visitor, ObjectStore& store) {
    constexpr TextRule endpoint_rule{.accepts =
                                         [](const std::string& text) {
                                             return (text.starts_with("http://") || text.starts_with("https://")) &&
                                                    text.find_first_of(std::string("@ \n\0", 4)) == std::string::npos;
                                         },
                                     .error_text = "is no address of a server: write https://HOST:PORT",
                                     .min_length = 1};
    visitor.member(
        "endpoints", store.endpoints, TextsKind(endpoint_rule),
        "addresses of the service, which tasks use in turn; default: AWS_ENDPOINT_URL, or that of the region", unset);
    visitor.member("region", store.region, TextKind{}, "default: AWS_REGION, or us-east-1", unset);
    visitor.member("virtual_hosts", store.virtual_hosts, FlagKind{},
                   "https://bucket.host/key instead of https://host/bucket/key");
    visitor.member("ca_file", store.ca_file, TextKind{},
                   "file with the certificates to trust; default: AWS_CA_BUNDLE, or the system's", unset);
    visitor.member("retries", store.retries, IntegerKind(0, 100),
                   "how often a request is sent again after a temporary error (connection lost, server busy)");
    visitor.member("timeout", store.timeout, DurationKind{true}, "a request fails when no byte moves for so long");
}

void describe_plan(Visitor& visitor, Plan& plan, const PhaseContext& context) {
    std::string format = plan_format;
    visitor.member("schema", format, FormatKind{}, "version of the format", required);
    visitor.member("id", plan.id, IdentifierKind{}, "name of the plan", required);
    visitor.member("title", plan.title, TextKind{}, "one line for people", unset);
    describe_comments(visitor);
    visitor.table("target", "the target of the run", [&plan](Visitor& members) { describe(members, plan.target); },
                  {.required = true});
    visitor.table("tasks", "number and placement of tasks",
                  [&plan](Visitor& members) { describe_tasks(members, plan.tasks); });
    const auto data = plan.has_data ? TableRules::Resolved::complete : TableRules::Resolved::absent;
    visitor.table("data", "data files, for operations on bytes",
                  [&plan](Visitor& members) { describe(members, plan.data); }, {.resolved = data});
    const auto meta = plan.has_data ? TableRules::Resolved::absent : TableRules::Resolved::empty;
    visitor.table("meta", "trees of directories and items, for operations on names",
                  [](Visitor& members) {
                      Meta checked;  // phases have their own; errors name meta, also when no phase uses it
                      Data of_meta;
                      describe_meta(members, checked, of_meta);
                  },
                  {.optional = true, .resolved = meta});
    visitor.list("phases", plan.phases, "what is done, in this order", {.required = true, .min_entries = 1},
                 [&context](Visitor& members, Phase& phase) { describe_phase(members, phase, context); });
    visitor.table("observe", "how finely the run is recorded",
                  [&plan](Visitor& members) { describe_observe(members, plan.observe); });
    visitor.table("limits", "when the run ends early", [&plan](Visitor& members) { describe_limits(members, plan); });
}

}  // namespace sonde::plan
