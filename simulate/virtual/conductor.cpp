// SPDX-License-Identifier: Apache-2.0
#include "virtual/conductor.hpp"

#include <algorithm>
#include <stdexcept>

namespace sonde::simulate {

void Conductor::play(std::vector<std::function<void()>> bodies, const std::vector<std::uint32_t>& clients, Time start) {
    players_.clear();
    stacks_ = std::make_unique<Stacks>(bodies.size());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        auto player = std::make_unique<Player>();
        player->fiber = std::make_unique<Fiber>(stacks_->at(i), std::move(bodies[i]));
        player->number = static_cast<std::uint32_t>(i);
        player->stream = machine_->stream(clients[i]);
        player->local = start;
        players_.push_back(std::move(player));
    }
    playing_ = players_.size();
    for (const auto& player : players_) {
        player->waiting = true;
        machine_->wake(start, player->number);
    }
    while (playing_ > 0) {
        if (!machine_->step()) {
            throw std::logic_error("the simulated tasks wait for each other and nothing is pending");
        }
    }
    for (const auto& player : players_) {
        machine_->end_stream(player->stream);
    }
}

void Conductor::resume(std::uint32_t number, Time at) {
    Player& player = *players_[number];
    player.waiting = false;
    player.local = std::max(player.local, at);
    current_ = number;
    player.fiber->resume();
    if (player.fiber->ended()) {
        --playing_;
    }
}

void Conductor::wait(Player& player) {
    player.waiting = true;
    player.fiber->pause();
}

void Conductor::call(Operation operation) {
    Player& player = current();
    operation.stream = player.stream;
    operation.tag = player.number;
    if (const std::optional<Done> done = machine_->at_once(player.local, operation)) {
        player.local = done->at;
        player.cpu += done->cpu;
        return;
    }
    // Ahead of the machine: what others do until then comes first.
    if (player.local > machine_->now()) {
        idle_until(player.local);
    }
    machine_->submit(player.local, operation);
    wait(player);
}

void Conductor::submit(Operation operation, std::uint32_t slot) {
    Player& player = current();
    if (player.local > machine_->now()) {
        idle_until(player.local);
    }
    operation.stream = player.stream;
    operation.tag = submitted_bit | std::uint64_t{slot} << 32U | player.number;
    ++player.submitted;
    machine_->submit(player.local, operation);
}

std::uint32_t Conductor::reap() {
    Player& player = current();
    while (player.ready.empty()) {
        wait(player);
    }
    const std::uint32_t slot = player.ready.front();
    player.ready.pop_front();
    --player.submitted;
    return slot;
}

void Conductor::idle_until(Time at) {
    Player& player = current();
    machine_->wake(at, player.number);
    wait(player);
}

void Conductor::meet() {
    Player& player = current();
    met_.push_back(player.number);
    met_at_ = std::max(met_at_, player.local);
    if (met_.size() == players_.size()) {
        std::vector<std::uint32_t> all;
        all.swap(met_);
        std::sort(all.begin(), all.end());
        const Time at = std::max(met_at_, machine_->now());
        met_at_ = 0;
        for (const std::uint32_t number : all) {
            machine_->wake(at, number);
        }
    }
    wait(player);
}

void Conductor::settle(Time until) {
    machine_->advance(until);
}

void Conductor::done(const Done& what) {
    const auto number = static_cast<std::uint32_t>(what.tag & 0xffffffffU);
    Player& player = *players_[number];
    player.cpu += what.cpu;
    if ((what.tag & submitted_bit) == 0) {
        resume(number, what.at);
        return;
    }
    player.ready.push_back(static_cast<std::uint32_t>(what.tag >> 32U) & 0x7fffffffU);
    if (player.waiting) {
        resume(number, what.at);
    }
}

void Conductor::woken(Time at, std::uint64_t tag) {
    resume(static_cast<std::uint32_t>(tag), at);
}

}  // namespace sonde::simulate
