// SPDX-License-Identifier: Apache-2.0
// The words of a plan: for every member that is a choice, what may be written and what it stands for. Reading a plan,
// writing it out again and naming things in records use the same tables; schema/plan has the same words. Operations
// have a table of their own (operations.hpp); backends and treatments say their names themselves (offer.hpp).
#pragma once

#include "plan/plan.hpp"
#include "plan/reader.hpp"

#include <sys/stat.h>

namespace sonde::plan {
namespace words {

// data
inline constexpr Choice<Mapping> mappings[] = {{"shared", Mapping::shared},
                                               {"per_task", Mapping::per_task},
                                               {"per_node", Mapping::per_node},
                                               {"per_group", Mapping::per_group},
                                               {"many", Mapping::many}};
inline constexpr Choice<Directories> directory_kinds[] = {
    {"one", Directories::one}, {"per_task", Directories::per_task}, {"per_node", Directories::per_node}};
inline constexpr Choice<Order> orders[] = {{"sequential", Order::sequential},
                                           {"reverse", Order::reverse},
                                           {"stride", Order::stride},
                                           {"random_permute", Order::random_permute},
                                           {"random_replace", Order::random_replace}};
inline constexpr Choice<Scope> scopes[] = {{"block", Scope::block}, {"task", Scope::task}, {"file", Scope::file}};
inline constexpr Choice<Sync> syncs[] = {{"none", Sync::none}, {"dsync", Sync::dsync}, {"sync", Sync::sync}};
inline constexpr Choice<Fsync> fsyncs[] = {{"none", Fsync::none},
                                           {"per_op", Fsync::per_op},
                                           {"end", Fsync::end},
                                           {"end_timed_separately", Fsync::end_timed_separately}};
inline constexpr Choice<Preallocate> preallocations[] = {{"none", Preallocate::none},
                                                         {"truncate", Preallocate::truncate},
                                                         {"fallocate", Preallocate::fallocate},
                                                         {"unwritten", Preallocate::unwritten}};
inline constexpr Choice<PayloadKind> payload_kinds[] = {{"stamped", PayloadKind::stamped},
                                                        {"random", PayloadKind::random},
                                                        {"zero", PayloadKind::zero},
                                                        {"ior_timestamp", PayloadKind::ior_timestamp},
                                                        {"ior_offset", PayloadKind::ior_offset},
                                                        {"ior_incompressible", PayloadKind::ior_incompressible},
                                                        {"ior_random", PayloadKind::ior_random}};
inline constexpr Choice<Verify> verifications[] = {
    {"none", Verify::none}, {"on_read", Verify::on_read}, {"readback", Verify::readback}, {"both", Verify::both}};
inline constexpr Choice<Amount::Of> amount_of[] = {{"bytes", Amount::Of::bytes},
                                                   {"node_memory", Amount::Of::node_memory}};
inline constexpr Choice<Amount::Per> amount_per[] = {
    {"task", Amount::Per::task}, {"node", Amount::Per::node}, {"total", Amount::Per::total}};

// phases
inline constexpr Choice<Open> opens[] = {
    {"truncate", Open::truncate}, {"overwrite", Open::overwrite}, {"exclusive", Open::exclusive}};
inline constexpr Choice<ShiftBy> shifts[] = {{"none", ShiftBy::none},       {"tasks", ShiftBy::tasks},
                                             {"nodes", ShiftBy::nodes},     {"random", ShiftBy::random},
                                             {"permute", ShiftBy::permute}, {"list", ShiftBy::list}};
inline constexpr Choice<Barrier> barriers[] = {
    {"none", Barrier::none}, {"phase", Barrier::phase}, {"intra", Barrier::intra}};
inline constexpr Choice<Lane::Tasks> lane_tasks[] = {
    {"same", Lane::Tasks::same}, {"first_half", Lane::Tasks::first_half}, {"second_half", Lane::Tasks::second_half}};
inline constexpr Choice<bool> lane_ops[] = {{"write", true}, {"read", false}};
inline constexpr Choice<bool> needs[] = {{"required", true}, {"best_effort", false}};
inline constexpr Choice<bool> process_kinds[] = {{"separate", true}, {"same", false}};
inline constexpr Choice<bool> subjects[] = {{"meta", true}, {"data", false}};

// meta
inline constexpr Choice<TreeScope> tree_scopes[] = {
    {"shared", TreeScope::shared}, {"per_task", TreeScope::per_task}, {"per_node", TreeScope::per_node}};
inline constexpr Choice<Objects> objects[] = {{"files", Objects::files}, {"directories", Objects::directories}};
inline constexpr Choice<MakeFile> makes[] = {{"open", MakeFile::open}, {"mknod", MakeFile::mknod}};
inline constexpr Choice<StatCall> stat_calls[] = {
    {"stat", StatCall::stat}, {"lstat", StatCall::lstat}, {"statx", StatCall::statx}};
inline constexpr Choice<SelectOrder> select_orders[] = {{"creation", SelectOrder::creation},
                                                        {"permute", SelectOrder::permute},
                                                        {"replace", SelectOrder::replace},
                                                        {"zipf", SelectOrder::zipf}};
inline constexpr Choice<PathKind> path_kinds[] = {{"relative", PathKind::relative}, {"full", PathKind::full}};
inline constexpr Choice<std::uint32_t> fields[] = {{"type", STATX_TYPE},     {"mode", STATX_MODE},
                                                   {"nlink", STATX_NLINK},   {"uid", STATX_UID},
                                                   {"gid", STATX_GID},       {"atime", STATX_ATIME},
                                                   {"mtime", STATX_MTIME},   {"ctime", STATX_CTIME},
                                                   {"ino", STATX_INO},       {"size", STATX_SIZE},
                                                   {"blocks", STATX_BLOCKS}, {"basic", STATX_BASIC_STATS},
                                                   {"btime", STATX_BTIME},   {"all", STATX_BASIC_STATS | STATX_BTIME}};
inline constexpr Choice<std::uint32_t> freshness[] = {{"as_stat", 0}, {"force", 0x2000}, {"dont", 0x4000}};
inline constexpr Choice<bool> absences[] = {{"stop", false}, {"count", true}};
inline constexpr Choice<bool> walk_roots[] = {{"tree", false}, {"directory", true}};

// meta.find
inline constexpr Choice<EntryType> entry_types[] = {{"any", EntryType::any},
                                                    {"file", EntryType::file},
                                                    {"directory", EntryType::directory},
                                                    {"link", EntryType::link},
                                                    {"other", EntryType::other}};

}  // namespace words

/// The word for a value; "?" when the table has none.
template <class T, std::size_t N>
constexpr const char* word(const Choice<T> (&choices)[N], T value) {
    for (const Choice<T>& one : choices) {
        if (one.value == value) {
            return one.name;
        }
    }
    return "?";
}

}  // namespace sonde::plan
