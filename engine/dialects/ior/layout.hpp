// SPDX-License-Identifier: Apache-2.0
// The three layouts of IOR's results: for people, JSON and CSV. Results go to the file of summaryFile or to standard
// output, and hold what IOR prints and no more; what Sonde adds is in sonde_figures.hpp, or, when asked for, in members
// of JSON.
#pragma once

#include "dialects/ior/results.hpp"

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace sonde::dialects::ior {

/// One test as the output layouts (text, JSON, CSV) show it.
struct IorTest {
    int number = 0;
    const IorSettings* settings = nullptr;
    TaskPlacement placement;
    std::string start_date;      ///< as IOR writes dates
    std::int64_t signature = 0;  ///< signature of the content
    std::vector<IorMeasurement> measurements;
    std::vector<IorMeasurement> select_measurements(bool writes) const;
    double expected_bytes() const;
};

class OutputWriter {
 public:
    OutputWriter() = default;
    OutputWriter(const OutputWriter&) = delete;
    OutputWriter& operator=(const OutputWriter&) = delete;
    virtual ~OutputWriter() = default;
    virtual void begin_output(const std::string& command) = 0;
    virtual void begin_test(const IorTest& test) = 0;
    virtual void write_measurement(const IorTest& test, const IorMeasurement& measurement) = 0;  ///< also of removals
    virtual void end_test(const IorTest& test) = 0;
    /// Why the program ends before its time, as IOR says it.
    virtual void write_error(const std::string& /*reason*/) {}
    /// Prints a warning where IOR does; returns false if this layout has no line for warnings.
    virtual bool write_warning(const std::string& /*sentence*/) { return false; }
    /// `complete`: all tests came to their end. IOR that fails says no more.
    virtual void end_output(const std::vector<const IorTest*>& tests, bool complete) = 0;
};

std::unique_ptr<OutputWriter> make_human(std::ostream& out, int verbose);
std::unique_ptr<OutputWriter> make_json(std::ostream& out, int verbose,
                                        bool with_figures);  ///< own: with members named "sonde"
std::unique_ptr<OutputWriter> make_csv(std::ostream& out);

/// The lines that both human-readable layouts share.
std::string format_text(const char* format, ...) __attribute__((format(printf, 1, 2)));  ///< at most 1023 letters
std::string format_current_date();                                                       ///< "Sun Nov 22 00:01:47 2026"
std::string describe_machine(int verbose);  ///< "Linux host"; from verbose 2 on with release, version and hardware
/// The settings under the names that IOR shows them by.
nlohmann::ordered_json build_parameters_json(const IorTest& test);
std::string platform_name();            ///< "host(Linux)", without the number at the end of the host's name
std::string format_size(double bytes);  ///< "256 KiB" is "262144 bytes", "1 MiB", "1.50 GiB"
struct FileSystemUse {
    std::string capacity, inodes;  ///< "252.0 GiB", "16.0 Mi"
    double used_percent = 0, inodes_percent = 0;
    bool is_known = false;
};
FileSystemUse measure_file_system_use(const std::string& path);
constexpr const char* version_text = "4.1.0+sonde";
constexpr double mebi = 0x1p20;  ///< bytes

}  // namespace sonde::dialects::ior
