// SPDX-License-Identifier: Apache-2.0
// The engine's team of one process whose streams are tasks in virtual time.
#pragma once

#include "ranks/team.hpp"
#include "virtual/task_scheduler.hpp"

#include <memory>
#include <vector>

namespace sonde::simulate {

class SimulatedTeam final : public ranks::Team {
 public:
    explicit SimulatedTeam(TaskScheduler& scheduler) : scheduler_(scheduler) { location_.node_of = {0}; }

    const ranks::ProcessLocation& location() const override { return location_; }
    std::string description() const override { return "simulated"; }
    std::string broadcast(std::string text) override { return text; }
    bool all_true(bool ok) override { return ok; }
    std::uint64_t reduce_maximum(std::uint64_t value) override { return value; }
    std::string reduce_text(std::string text, const std::function<std::string(std::string, std::string)>&) override {
        return text;
    }
    std::byte* allocate_shared(std::size_t bytes) override {
        memory_.push_back(std::make_unique<std::byte[]>(bytes));
        return memory_.back().get();
    }
    void set_streams_per_process(int) override {}
    void align_clocks() override {}
    bool wait_for_all(int) override {
        scheduler_.wait_at_barrier();
        return true;
    }
    bool wait_for_node(int stream) override { return wait_for_all(stream); }
    ranks::NodeControl& control() override { return control_; }
    std::int64_t clock_offset_ns() const override { return 0; }
    std::int64_t clock_error_ns() const override { return 0; }
    void finish() override {}

 private:
    TaskScheduler& scheduler_;
    ranks::ProcessLocation location_;
    ranks::NodeControl control_;
    std::vector<std::unique_ptr<std::byte[]>> memory_;
};

}  // namespace sonde::simulate
