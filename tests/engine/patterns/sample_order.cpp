// SPDX-License-Identifier: Apache-2.0
// Each epoch reads every sample once, in another order, by other tasks.
#include "patterns/sample_order.hpp"

#include <doctest/doctest.h>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

using sonde::patterns::SampleLocation;
using sonde::patterns::SampleOrder;
using sonde::patterns::TrainingSet;
using sonde::plan::Shuffle;

namespace {

std::vector<SampleLocation> list_samples(const TrainingSet& set, Shuffle shuffle, std::uint64_t epoch,
                                         std::uint64_t task, std::uint64_t seed = 1) {
    const SampleOrder order(set, shuffle, seed, epoch);
    std::vector<SampleLocation> samples;
    for (std::uint64_t i = 0; i < set.per_task(); ++i) {
        samples.push_back(order.locate(task, i));
    }
    return samples;
}

}  // namespace

TEST_CASE("every_epoch_reads_each_sample_once") {
    for (const TrainingSet set :
         {TrainingSet{3, 4, 5}, TrainingSet{1, 1, 300}, TrainingSet{8, 100, 1}, TrainingSet{5, 1, 1}}) {
        for (const Shuffle shuffle : {Shuffle::samples, Shuffle::files, Shuffle::none}) {
            for (const std::uint64_t epoch : {0U, 1U, 7U}) {
                std::set<std::tuple<int, std::uint64_t, std::uint64_t>> all;
                for (std::uint64_t task = 0; task < set.tasks; ++task) {
                    for (const SampleLocation& sample : list_samples(set, shuffle, epoch, task)) {
                        CHECK(static_cast<std::uint64_t>(sample.owner) < set.tasks);
                        CHECK(sample.file < set.files);
                        CHECK(sample.block < set.samples);
                        all.insert({sample.owner, sample.file, sample.block});
                    }
                }
                CHECK(all.size() == set.tasks * set.per_task());
            }
        }
    }
}

TEST_CASE("epochs_and_seeds_differ_and_repeat") {
    const TrainingSet set{4, 10, 10};
    for (const Shuffle shuffle : {Shuffle::samples, Shuffle::files}) {
        const auto first = list_samples(set, shuffle, 0, 2);
        CHECK(first == list_samples(set, shuffle, 0, 2));
        CHECK(first != list_samples(set, shuffle, 1, 2));
        CHECK(first != list_samples(set, shuffle, 0, 2, 9));
    }
}

TEST_CASE("shuffled_tasks_read_samples_of_all_tasks") {
    std::set<int> owners;
    for (const SampleLocation& sample : list_samples({4, 10, 10}, Shuffle::samples, 0, 0)) {
        owners.insert(sample.owner);
    }
    CHECK(owners == std::set<int>{0, 1, 2, 3});
}

TEST_CASE("shuffled_files_keep_the_order_of_their_samples") {
    const auto samples = list_samples({3, 4, 5}, Shuffle::files, 3, 1);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        CHECK(samples[i].block == i % 5);
        CHECK(samples[i].file == samples[i / 5 * 5].file);
        CHECK(samples[i].owner == samples[i / 5 * 5].owner);
    }
}

TEST_CASE("unshuffled_task_reads_its_samples_in_order") {
    const auto samples = list_samples({3, 2, 2}, Shuffle::none, 3, 1);
    CHECK(samples == std::vector<SampleLocation>{{1, 0, 0}, {1, 0, 1}, {1, 1, 0}, {1, 1, 1}});
}
