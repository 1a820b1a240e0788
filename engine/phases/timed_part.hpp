// SPDX-License-Identifier: Apache-2.0
// The steps of one phase on one process. Every process runs the same steps in the same order; those that speak to the
// record do so at the root only. phase_run.cpp has the steps around the timed part, phase_begin.cpp and
// phase_report.cpp what is said before and after it, read_back.cpp the verification that follows.
#pragma once

#include "phases/jobs.hpp"
#include "phases/phase.hpp"
#include "plan/parse.hpp"
#include "results/totals.hpp"
#include "treatments/residency.hpp"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sonde::phases {

class PhaseRun {
 public:
    PhaseRun(Context& context, std::size_t index, HalfRates& half)
        : context_(context),
          index_(index),
          phase_(context.plan.phases[index]),
          map_(context.directory, phase_.data.files, context.tasks),
          backend_(*backends::find(phase_.data.backend)),
          half_(half) {}

    bool run() {
        reset();
        if (!treat() || !prepare() || !set_up(false)) {
            return false;
        }
        announce();
        if (!time_it()) {
            return false;
        }
        collect();
        const bool good = conclude();
        held_.clear();
        return good && read_back();
    }

 private:
    std::vector<std::string> node_files() const;
    bool treat();
    bool prepare();
    bool set_up(bool verification);
    void reset();
    void announce();
    void announce_tree(nlohmann::ordered_json& line) const;
    void make_walk_board();
    bool time_it();
    void work(std::size_t stream);
    void collect();
    bool conclude();
    bool read_back();
    void remember(const results::Totals& totals);
    bool save_manifest();
    void say(const results::Totals& totals);
    void say_notes();
    void say_errors(const nlohmann::json& errors);
    nlohmann::json gather_errors();
    bool agree(const std::string& complaint, int code);
    std::string stop_word(const results::Totals& totals) const;
    nlohmann::ordered_json tagged(const nlohmann::ordered_json& line) const {
        nlohmann::ordered_json whole{{"phase", phase_.id}, {"index", index_}, {"op", plan::text(phase_.op)}};
        whole.update(line);
        return whole;
    }

    Context& context_;
    std::size_t index_;
    const plan::Phase& phase_;
    files::FileMap map_;
    const backends::Backend& backend_;
    HalfRates& half_;
    std::vector<std::shared_ptr<void>> held_;  ///< memory hogs, until the phase is over
    treatments::Residency residency_;
    std::vector<workloads::StreamJob> jobs_;
    std::unique_ptr<payload::Base> base_;
    std::vector<std::unique_ptr<workloads::Stream>> streams_;
    results::Totals totals_;
    std::uint32_t stop_ = 0;
    std::int64_t drift_ns_ = 0;
    double cpu_before_ = 0, other_cpu_ = -1;
    bool verification_ = false;
};

}  // namespace sonde::phases
