// SPDX-License-Identifier: Apache-2.0
// Names of all choices in a plan and their values. Parsing, resolving and records use the same tables; schema/plan has
// the same names. Operations have a separate table (operations.hpp), and backends and treatments define their names
// (capabilities.hpp).
#pragma once

#include "plan/plan.hpp"
#include "plan/reader.hpp"

#include <sys/stat.h>

namespace sonde::plan {
namespace choices {

// data
inline constexpr NamedValue<Mapping> mappings[] = {{"shared", Mapping::shared},
                                                   {"per_task", Mapping::per_task},
                                                   {"per_node", Mapping::per_node},
                                                   {"per_group", Mapping::per_group},
                                                   {"many", Mapping::many}};
inline constexpr NamedValue<DirectoryMapping> directory_kinds[] = {
    {"one", DirectoryMapping::one}, {"per_task", DirectoryMapping::per_task}, {"per_node", DirectoryMapping::per_node}};
inline constexpr NamedValue<AccessOrder> orders[] = {{"sequential", AccessOrder::sequential},
                                                     {"reverse", AccessOrder::reverse},
                                                     {"stride", AccessOrder::stride},
                                                     {"random_permute", AccessOrder::random_permute},
                                                     {"random_replace", AccessOrder::random_replace}};
inline constexpr NamedValue<PermutationScope> permutation_scopes[] = {
    {"block", PermutationScope::block}, {"task", PermutationScope::task}, {"file", PermutationScope::file}};
inline constexpr NamedValue<DistributionKind> distributions[] = {{"uniform", DistributionKind::uniform},
                                                                 {"zipf", DistributionKind::zipf},
                                                                 {"pareto", DistributionKind::pareto},
                                                                 {"normal", DistributionKind::normal}};
inline constexpr NamedValue<SyncFlag> sync_flags[] = {
    {"none", SyncFlag::none}, {"dsync", SyncFlag::o_dsync}, {"sync", SyncFlag::o_sync}};
inline constexpr NamedValue<Fsync> fsync_modes[] = {{"none", Fsync::none},
                                                    {"per_op", Fsync::per_op},
                                                    {"end", Fsync::end},
                                                    {"end_timed_separately", Fsync::end_timed_separately}};
inline constexpr NamedValue<Preallocate> preallocations[] = {{"none", Preallocate::none},
                                                             {"truncate", Preallocate::truncate},
                                                             {"fallocate", Preallocate::fallocate},
                                                             {"unwritten", Preallocate::unwritten}};
inline constexpr NamedValue<PayloadKind> payload_kinds[] = {{"stamped", PayloadKind::stamped},
                                                            {"random", PayloadKind::random},
                                                            {"zero", PayloadKind::zero},
                                                            {"ior_timestamp", PayloadKind::ior_timestamp},
                                                            {"ior_offset", PayloadKind::ior_offset},
                                                            {"ior_incompressible", PayloadKind::ior_incompressible},
                                                            {"ior_random", PayloadKind::ior_random}};
inline constexpr NamedValue<Verify> verify_modes[] = {
    {"none", Verify::none}, {"on_read", Verify::on_read}, {"readback", Verify::readback}, {"both", Verify::both}};
inline constexpr NamedValue<Amount::Basis> amount_bases[] = {{"bytes", Amount::Basis::bytes},
                                                             {"node_memory", Amount::Basis::node_memory}};
inline constexpr NamedValue<Amount::Granularity> amount_granularities[] = {
    {"task", Amount::Granularity::task}, {"node", Amount::Granularity::node}, {"total", Amount::Granularity::total}};

// phases
inline constexpr NamedValue<OpenMode> open_modes[] = {
    {"truncate", OpenMode::truncate}, {"overwrite", OpenMode::overwrite}, {"exclusive", OpenMode::exclusive}};
inline constexpr NamedValue<ShiftBy> shift_kinds[] = {{"none", ShiftBy::none},       {"tasks", ShiftBy::tasks},
                                                      {"nodes", ShiftBy::nodes},     {"random", ShiftBy::random},
                                                      {"permute", ShiftBy::permute}, {"list", ShiftBy::list}};
inline constexpr NamedValue<Barrier> barriers[] = {
    {"none", Barrier::none}, {"phase", Barrier::phase}, {"intra", Barrier::intra}};
inline constexpr NamedValue<DuplexStream::TaskSubset> stream_task_subsets[] = {
    {"same", DuplexStream::TaskSubset::same},
    {"first_half", DuplexStream::TaskSubset::first_half},
    {"second_half", DuplexStream::TaskSubset::second_half}};
inline constexpr NamedValue<bool> stream_directions[] = {{"write", true}, {"read", false}};
inline constexpr NamedValue<bool> requirement_levels[] = {{"required", true}, {"best_effort", false}};
inline constexpr NamedValue<bool> process_kinds[] = {{"separate", true}, {"same", false}};
inline constexpr NamedValue<ThinkTime> think_times[] = {{"as_traced", ThinkTime::as_traced}, {"none", ThinkTime::none}};
inline constexpr NamedValue<Shuffle> shuffles[] = {
    {"samples", Shuffle::samples}, {"files", Shuffle::files}, {"none", Shuffle::none}};
inline constexpr NamedValue<bool> phase_subjects[] = {{"meta", true}, {"data", false}};

// meta
inline constexpr NamedValue<TreeScope> tree_scopes[] = {
    {"shared", TreeScope::shared}, {"per_task", TreeScope::per_task}, {"per_node", TreeScope::per_node}};
inline constexpr NamedValue<Objects> object_kinds[] = {{"files", Objects::files},
                                                       {"directories", Objects::directories}};
inline constexpr NamedValue<MakeFile> create_calls[] = {{"open", MakeFile::open}, {"mknod", MakeFile::mknod}};
inline constexpr NamedValue<StatCall> stat_calls[] = {
    {"stat", StatCall::stat}, {"lstat", StatCall::lstat}, {"statx", StatCall::statx}};
inline constexpr NamedValue<SelectOrder> select_orders[] = {{"creation", SelectOrder::creation},
                                                            {"permute", SelectOrder::permute},
                                                            {"replace", SelectOrder::replace},
                                                            {"zipf", SelectOrder::zipf}};
inline constexpr NamedValue<PathKind> path_kinds[] = {{"relative", PathKind::relative}, {"full", PathKind::full}};
inline constexpr NamedValue<std::uint32_t> statx_fields[] = {
    {"type", STATX_TYPE},         {"mode", STATX_MODE},
    {"nlink", STATX_NLINK},       {"uid", STATX_UID},
    {"gid", STATX_GID},           {"atime", STATX_ATIME},
    {"mtime", STATX_MTIME},       {"ctime", STATX_CTIME},
    {"ino", STATX_INO},           {"size", STATX_SIZE},
    {"blocks", STATX_BLOCKS},     {"btime", STATX_BTIME},
    {"basic", STATX_BASIC_STATS}, {"all", STATX_BASIC_STATS | STATX_BTIME}};
inline constexpr NamedValue<std::uint32_t> statx_sync_flags[] = {{"as_stat", 0}, {"force", 0x2000}, {"dont", 0x4000}};
inline constexpr NamedValue<bool> reactions_to_missing[] = {{"stop", false}, {"count", true}};
inline constexpr NamedValue<bool> walk_roots[] = {{"tree", false}, {"directory", true}};

// meta.find
inline constexpr NamedValue<EntryType> entry_types[] = {{"any", EntryType::any},
                                                        {"file", EntryType::file},
                                                        {"directory", EntryType::directory},
                                                        {"link", EntryType::link},
                                                        {"other", EntryType::other}};

}  // namespace choices

/// The word for a value; "?" when the table has none.
template <class T, std::size_t N>
constexpr const char* get_value_name(const NamedValue<T> (&choices)[N], T value) {
    for (const NamedValue<T>& row : choices) {
        if (row.value == value) {
            return row.name;
        }
    }
    return "?";
}

}  // namespace sonde::plan
