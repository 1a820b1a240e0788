// SPDX-License-Identifier: Apache-2.0
// The engine's team when all of it is one process and its streams are players of a conductor.
#pragma once

#include "ranks/team.hpp"
#include "virtual/conductor.hpp"

#include <memory>
#include <vector>

namespace sonde::simulate {

class Crew final : public ranks::Team {
 public:
    explicit Crew(Conductor& conductor) : conductor_(conductor) { place_.node_of = {0}; }

    const ranks::Place& place() const override { return place_; }
    std::string description() const override { return "simulated"; }
    std::string broadcast(std::string text) override { return text; }
    bool all(bool ok) override { return ok; }
    std::uint64_t maximum(std::uint64_t mine) override { return mine; }
    std::string reduce(std::string mine, const std::function<std::string(std::string, std::string)>&) override {
        return mine;
    }
    std::byte* shared(std::size_t bytes) override {
        memory_.push_back(std::make_unique<std::byte[]>(bytes));
        return memory_.back().get();
    }
    void arrange(int) override {}
    void align_clocks() override {}
    bool meet(int) override {
        conductor_.meet();
        return true;
    }
    bool meet_node(int stream) override { return meet(stream); }
    ranks::NodeControl& control() override { return control_; }
    std::int64_t clock_offset_ns() const override { return 0; }
    std::int64_t clock_error_ns() const override { return 0; }
    void finish() override {}

 private:
    Conductor& conductor_;
    ranks::Place place_;
    ranks::NodeControl control_;
    std::vector<std::unique_ptr<std::byte[]>> memory_;
};

}  // namespace sonde::simulate
