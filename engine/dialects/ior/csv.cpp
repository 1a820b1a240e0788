// SPDX-License-Identifier: Apache-2.0
// IOR's results as CSV: a row a phase, nothing else.
#include "dialects/ior/layout.hpp"

#include <iomanip>
#include <ostream>

namespace sonde::dialects::ior {
namespace {

class CsvWriter final : public OutputWriter {
 public:
    explicit CsvWriter(std::ostream& out) : out_(out) {}
    void begin_output(const std::string&) override {}
    void begin_test(const IorTest&) override {
        out_ << "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n";
    }
    void write_measurement(const IorTest& test, const IorMeasurement& measurement) override {
        if (measurement.step.kind != IorStep::StepKind::write && measurement.step.kind != IorStep::StepKind::read) {
            return;
        }
        const IorSettings& s = *test.settings;
        out_ << (measurement.writes() ? "write" : "read") << std::fixed << std::setprecision(9);
        for (const double value :
             {measurement.bandwidth() / 0x1p20, measurement.operations_per_s(), measurement.latency_s,
              static_cast<double>(s.block) / 1024, static_cast<double>(s.transfer) / 1024, measurement.open_s,
              measurement.transfer_s, measurement.close_s, measurement.total_s}) {
            out_ << "," << value;
        }
        out_ << "," << test.placement.active_tasks(s) << "," << measurement.step.repetition << "\n";
        out_.flush();
    }
    void end_test(const IorTest&) override {}
    void end_output(const std::vector<const IorTest*>&, bool) override { out_.flush(); }

 private:
    std::ostream& out_;
};

}  // namespace

std::unique_ptr<OutputWriter> make_csv(std::ostream& out) {
    return std::make_unique<CsvWriter>(out);
}

}  // namespace sonde::dialects::ior
