// SPDX-License-Identifier: Apache-2.0
// Lets the tasks of a phase run, each in a fiber, in the order of the machine's clock. A task may be ahead of that
// clock as long as it touches nothing that others see; before it does, it waits until its time has come.
#pragma once

#include "model/machine.hpp"
#include "virtual/fiber.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace sonde::simulate {

/// One stream of the engine as the conductor knows it.
struct Player {
    std::unique_ptr<Fiber> fiber;
    std::uint32_t number = 0;
    StreamId stream = 0;
    Time local = 0;                   ///< its own clock: at or after the machine's
    Time cpu = 0;                     ///< processor time of its calls in this phase
    bool waiting = false;             ///< for one call, a time, or any of those it submitted
    std::deque<std::uint32_t> ready;  ///< slots of submitted operations that are done
    std::uint32_t submitted = 0;      ///< of them, not reaped yet
};

class Conductor final : public Listener {
 public:
    Conductor() = default;
    void use(Machine& machine) { machine_ = &machine; }
    Machine& machine() { return *machine_; }

    /// Players of a phase: `bodies` run from `start` on until all have ended. `clients` = the node of each.
    void play(std::vector<std::function<void()>> bodies, const std::vector<std::uint32_t>& clients, Time start);
    /// Of the player that runs now.
    Player& current() { return *players_[current_]; }
    const Player& player(std::size_t number) const { return *players_[number]; }

    /// Called by players: performs one call and waits for its end.
    void call(Operation operation);
    /// Hands over an operation under a slot number; reap() says which are done.
    void submit(Operation operation, std::uint32_t slot);
    std::uint32_t reap();
    /// Waits until `at`.
    void idle_until(Time at);
    /// All players come here once before any goes on, at the time of the last.
    void meet();

    /// Whoever starts and ends phases: lets the machine run until nothing is written back any more, or until a time.
    void settle(Time until);

    void done(const Done& what) override;
    void woken(Time at, std::uint64_t tag) override;

 private:
    void resume(std::uint32_t number, Time at);
    void wait(Player& player);

    static constexpr std::uint64_t submitted_bit = 1ULL << 63U;

    Machine* machine_ = nullptr;
    std::vector<std::unique_ptr<Player>> players_;
    std::unique_ptr<Stacks> stacks_;
    std::size_t current_ = 0, playing_ = 0;
    std::vector<std::uint32_t> met_;
    Time met_at_ = 0;
};

}  // namespace sonde::simulate
