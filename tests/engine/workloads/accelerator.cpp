// SPDX-License-Identifier: Apache-2.0
// Utilization of an emulated accelerator for batches that become ready at known times.
#include "workloads/accelerator.hpp"

#include <doctest/doctest.h>
#include <cstdint>
#include <vector>

using sonde::workloads::Accelerator;

namespace {

Accelerator run(std::uint64_t compute, const std::vector<std::uint64_t>& ready, std::uint64_t prefetch = 2) {
    Accelerator accelerator(compute, prefetch);
    for (const std::uint64_t tick : ready) {
        accelerator.add_batch(tick);
    }
    return accelerator;
}

}  // namespace

TEST_CASE("accelerator_never_waits_when_batches_are_early") {
    const Accelerator accelerator = run(100, {30, 40, 50, 60});
    CHECK(accelerator.first_ready() == 30);
    CHECK(accelerator.last_computation_end() == 430);
    CHECK(accelerator.computation_duration() == 300);
    CHECK(accelerator.steps_duration() == 300);
}

TEST_CASE("accelerator_waits_for_late_batches_except_the_first") {
    const Accelerator accelerator = run(100, {1000, 1150, 1200, 1500});
    CHECK(accelerator.last_computation_end() == 1600);  // 1000-1100, 1150-1250, 1250-1350, 1500-1600
    CHECK(accelerator.computation_duration() == 300);   // of three
    CHECK(accelerator.steps_duration() == 500);         // from 1100 on
}

TEST_CASE("single_batch_has_no_rated_step") {
    const Accelerator accelerator = run(100, {7});
    CHECK(accelerator.batches() == 1);
    CHECK(accelerator.computation_duration() == 0);
    CHECK(accelerator.steps_duration() == 0);
    CHECK(run(100, {}).computation_duration() == 0);
}

TEST_CASE("reading_waits_until_the_queue_has_room") {
    Accelerator accelerator(100, 2);
    CHECK(accelerator.next_read_time() == 0);
    accelerator.add_batch(10);  // taken at 10
    CHECK(accelerator.next_read_time() == 0);
    accelerator.add_batch(20);                  // taken at 110
    CHECK(accelerator.next_read_time() == 10);  // batch 2 takes the room of batch 0
    accelerator.add_batch(30);                  // taken at 210
    CHECK(accelerator.next_read_time() == 110);
    accelerator.add_batch(500);
    CHECK(accelerator.next_read_time() == 210);
}

TEST_CASE("prefetch_of_one_reads_while_the_batch_before_is_computed") {
    Accelerator accelerator(100, 1);
    CHECK(accelerator.next_read_time() == 0);
    accelerator.add_batch(50);
    CHECK(accelerator.next_read_time() == 50);
    accelerator.add_batch(90);
    CHECK(accelerator.next_read_time() == 150);
}
