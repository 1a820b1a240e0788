// SPDX-License-Identifier: Apache-2.0
#include "files/dataset.hpp"

#include "patterns/permutation.hpp"

#include <algorithm>

namespace sonde::files {

using nlohmann::json;

bool DataState::has_file(int k) const {
    return file_indices.empty() || std::find(file_indices.begin(), file_indices.end(), k) != file_indices.end();
}

bool DataState::covers_files_of(const DataState& other) const {
    return file_name_suffix == other.file_name_suffix &&
           (file_indices.empty() ||
            (!other.file_indices.empty() &&
             std::all_of(other.file_indices.begin(), other.file_indices.end(), [this](int k) { return has_file(k); })));
}

void Dataset::add_state(DataState state) {
    if (state.replaces_files) {
        std::erase_if(states_, [&state](const DataState& older) { return state.covers_files_of(older); });
    }
    states_.push_back(std::move(state));
}

void Dataset::forget(const std::string& suffix) {
    std::erase_if(states_, [&suffix](const DataState& state) { return state.file_name_suffix == suffix; });
}

const DataState* Dataset::find_source(const plan::Phase& phase, int k) const {
    for (auto state = states_.rbegin(); state != states_.rend(); ++state) {
        if (state->adds_data && state->has_file(k) && state->file_name_suffix == phase.data.files.suffix &&
            (phase.data_of.empty() || state->phase == phase.data_of)) {
            return &*state;
        }
    }
    return nullptr;
}

bool is_same_geometry(const plan::Access& a, std::uint64_t segments_a, const plan::Access& b,
                      std::uint64_t segments_b) {
    const auto key = [](const plan::Access& x, std::uint64_t segments) {
        const bool random =
            x.order == plan::AccessOrder::random_permute || x.order == plan::AccessOrder::random_replace;
        return std::tuple(x.transfer, x.block, segments, x.order, random ? x.scope : plan::PermutationScope::task,
                          x.stride, x.gap, x.offset, random ? x.seed : 0, x.within.value_or(0));
    };
    return key(a, segments_a) == key(b, segments_b);
}

std::uint64_t operations_in_file(const DataState& state, int task, int k, std::uint64_t per_file) {
    std::uint64_t position = static_cast<std::uint64_t>(k);
    if (!state.file_indices.empty()) {
        const auto match = std::find(state.file_indices.begin(), state.file_indices.end(), k);
        if (match == state.file_indices.end()) {
            return 0;
        }
        position = static_cast<std::uint64_t>(match - state.file_indices.begin());
    }
    const std::uint64_t done = state.operations_by_task.at(static_cast<std::size_t>(task));
    const std::uint64_t before = position * per_file;
    return done <= before ? 0 : std::min(per_file, done - before);
}

bool Dataset::is_verifiable(const DataState& source, const plan::Access& access, std::uint64_t segments, int k) const {
    const auto first = std::find_if(states_.begin(), states_.end(), [&](const DataState& s) { return &s == &source; });
    const bool same = is_same_geometry(access, segments, source.access, source.segments);
    return std::all_of(first, states_.end(), [&](const DataState& s) {
        if (!s.has_file(k) || s.file_name_suffix != source.file_name_suffix) {
            return true;
        }
        if (!s.is_order_known || !is_same_geometry(s.access, s.segments, source.access, source.segments)) {
            return false;
        }
        // Other operations than the writer's find one generation only in a file that is completely new.
        bool is_complete = true;
        for (std::size_t task = 0; task < s.operations_by_task.size(); ++task) {
            const std::uint64_t count = s.operations_per_file();
            is_complete = is_complete && operations_in_file(s, static_cast<int>(task), k, count) == count;
        }
        return same || is_complete || &s == &source;
    });
}

std::vector<workloads::WrittenGeneration> Dataset::list_generations(const DataState& source, const plan::Access& access,
                                                                    std::uint64_t segments, int task, int k) const {
    std::vector<workloads::WrittenGeneration> list;
    for (auto state = states_.rbegin(); state != states_.rend(); ++state) {
        if (!state->has_file(k) || state->file_name_suffix != source.file_name_suffix) {
            continue;
        }
        const std::uint64_t per_file = state->operations_per_file();
        const bool same = is_same_geometry(access, segments, state->access, state->segments);
        const std::uint64_t count = operations_in_file(*state, task, k, per_file);
        // Another geometry reads only what has one generation.
        list.push_back({state->generation, same ? count : ~0ULL});
        if (!same || count == per_file || state->replaces_files) {
            break;
        }
    }
    return list;
}

std::vector<ByteRange> Dataset::list_written_ranges(const DataState& source, const FileMap& map, int task, int k,
                                                    int tasks) const {
    std::vector<ByteRange> ranges;
    bool begun = false;
    for (auto state = states_.rbegin(); state != states_.rend(); ++state) {
        begun = begun || &*state == &source;
        if (!begun || !state->adds_data || !state->has_file(k) || state->file_name_suffix != source.file_name_suffix) {
            continue;
        }
        if (const std::optional<ByteRange> range = find_written_range(*state, map, task, k, tasks)) {
            ranges.push_back(*range);
        }
        if (state->replaces_files) {
            break;
        }
    }
    return ranges;
}

int find_writer(const DataState& state, const FileMap& map, int task, std::uint64_t offset, int tasks) {
    const plan::Access& a = state.access;
    const std::uint64_t sharers = map.share_of_task(task).sharers;
    const bool random = a.order == plan::AccessOrder::random_permute || a.order == plan::AccessOrder::random_replace;
    if (sharers == 1) {
        return task;
    }
    if ((random && a.scope == plan::PermutationScope::file) || offset < a.offset) {
        return -1;
    }
    const std::uint64_t pitch = a.order == plan::AccessOrder::stride ? a.stride : a.block + a.gap;
    const std::uint64_t index = (offset - a.offset) / pitch % sharers;
    for (int other = 0; other < tasks; ++other) {
        if (map.file_number(other, 0) == map.file_number(task, 0) && map.share_of_task(other).index == index) {
            return other;
        }
    }
    return -1;
}

std::optional<ByteRange> find_written_range(const DataState& state, const FileMap& map, int task, int k, int tasks) {
    const plan::Access& a = state.access;
    const std::uint64_t slots = a.block / a.transfer;
    const std::uint64_t per_file = state.operations_per_file();
    const patterns::FileShare share = map.share_of_task(task);
    bool complete = true;
    std::uint64_t least = per_file;
    const bool alone = share.sharers == 1;
    for (int other = alone ? task : 0; other < (alone ? task + 1 : tasks); ++other) {
        if (map.file_number(other, k) == map.file_number(task, k)) {
            const std::uint64_t count = operations_in_file(state, other, k, per_file);
            complete = complete && count == per_file;
            least = std::min(least, count);
        }
    }
    const bool one_block = share.sharers * state.segments == 1;
    const bool holes = a.order == plan::AccessOrder::random_replace ||
                       (a.order == plan::AccessOrder::stride ? a.stride > a.transfer && per_file * share.sharers > 1
                                                             : a.gap > 0 && !one_block);
    if (holes || (!complete && a.order != plan::AccessOrder::sequential)) {
        return std::nullopt;
    }
    if (complete) {
        return ByteRange{a.offset, patterns::Geometry(a, state.segments, share, 0).end_of_file()};
    }
    return ByteRange{a.offset, a.offset + (alone ? least * a.transfer : least / slots * share.sharers * a.block)};
}

json Dataset::to_json() const {
    json list = json::array();
    for (const DataState& s : states_) {
        list.push_back(
            {{"phase", s.phase},
             {"generation", s.generation},
             {"access",
              {s.access.transfer, s.access.block, static_cast<int>(s.access.order), static_cast<int>(s.access.scope),
               s.access.stride, s.access.gap, s.access.offset, s.access.seed}},
             {"segments", s.segments},
             {"suffix", s.file_name_suffix},
             {"files", s.file_indices},
             {"operations", s.operations_by_task},
             {"exact", s.is_order_known},
             {"extends", s.adds_data},
             {"fresh", s.replaces_files},
             {"order_rule", patterns::Permutation::order_version}});
    }
    return list;
}

namespace {

/// The state of an engine that had another rule for random orders. Which blocks of a file that is not complete were
/// written is no longer known: the state is as after writes at random offsets.
void forget_order(DataState& state) {
    const std::uint64_t each = state.operations_per_file();
    const bool is_complete = std::all_of(state.operations_by_task.begin(), state.operations_by_task.end(),
                                         [each](std::uint64_t count) { return each > 0 && count % each == 0; });
    if (state.access.order == plan::AccessOrder::random_permute && !is_complete) {
        state.access.order = plan::AccessOrder::random_replace;
        state.is_order_known = false;
    }
}

}  // namespace

Dataset Dataset::from_json(const json& list) {
    Dataset dataset;
    for (const json& item : list) {
        DataState s;
        s.phase = item.at("phase");
        s.generation = item.at("generation");
        const json& a = item.at("access");
        s.access.transfer = a.at(0);
        s.access.block = a.at(1);
        s.access.order = static_cast<plan::AccessOrder>(a.at(2).get<int>());
        s.access.scope = static_cast<plan::PermutationScope>(a.at(3).get<int>());
        s.access.stride = a.at(4);
        s.access.gap = a.at(5);
        s.access.offset = a.at(6);
        s.access.seed = a.at(7);
        s.segments = item.at("segments");
        s.file_name_suffix = item.value("suffix", "");
        s.file_indices = item.at("files").get<std::vector<int>>();
        s.operations_by_task = item.at("operations").get<std::vector<std::uint64_t>>();
        s.is_order_known = item.at("exact");
        s.adds_data = item.at("extends");
        s.replaces_files = item.at("fresh");
        if (item.at("order_rule") != patterns::Permutation::order_version) {
            forget_order(s);
        }
        dataset.add_state(std::move(s));
    }
    return dataset;
}

}  // namespace sonde::files
