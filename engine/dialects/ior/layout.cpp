// SPDX-License-Identifier: Apache-2.0
#include "dialects/ior/layout.hpp"

#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <ctime>

namespace sonde::dialects::ior {

std::string format_text(const char* format, ...) {
    std::array<char, 1024> line{};
    va_list values;
    va_start(values, format);
    std::vsnprintf(line.data(), line.size(), format, values);
    va_end(values);
    return line.data();
}

std::vector<IorMeasurement> IorTest::select_measurements(bool writes) const {
    std::vector<IorMeasurement> all;
    for (const IorMeasurement& measurement : measurements) {
        if (measurement.step.kind == (writes ? IorStep::StepKind::write : IorStep::StepKind::read)) {
            all.push_back(measurement);
        }
    }
    return all;
}

double IorTest::expected_bytes() const {
    return static_cast<double>(settings->block) * static_cast<double>(settings->segments) *
           placement.active_tasks(*settings);
}

std::string format_current_date() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    std::array<char, 64> text{};
    std::strftime(text.data(), text.size(), "%a %b %e %H:%M:%S %Y", &parts);
    return text.data();
}

std::string describe_machine(int verbose) {
    utsname name{};
    if (uname(&name) != 0) {
        return "Unknown";
    }
    const std::string more =
        verbose < 2 ? std::string() : std::string(" ") + name.release + " " + name.version + " " + name.machine;
    return std::string(name.sysname) + " " + name.nodename + more;
}

std::string platform_name() {
    utsname name{};
    if (uname(&name) != 0) {
        return "Unknown(Unknown)";
    }
    std::string host = name.nodename;
    while (host.size() > 1 && host.back() >= '0' && host.back() <= '9') {
        host.pop_back();
    }
    return host + "(" + name.sysname + ")";
}

std::string format_size(double bytes) {
    struct SizeUnit {
        double size;
        const char* name;
    };
    static constexpr SizeUnit units[] = {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}};
    for (const SizeUnit& unit : units) {
        if (bytes >= unit.size) {
            const double count = bytes / unit.size;
            const bool is_integer = count == static_cast<double>(static_cast<std::int64_t>(count));
            return format_text(is_integer ? "%.0f " : "%.2f ", count) + unit.name;
        }
    }
    return format_text("%.0f bytes", bytes);
}

FileSystemUse measure_file_system_use(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    FileSystemUse use;
    struct statvfs info {};
    if (statvfs(path.c_str(), &info) != 0 && statvfs(directory.c_str(), &info) != 0) {
        return use;
    }
    const auto share = [](double free, double all) { return all > 0 ? (1 - free / all) * 100 : 0; };
    const double all = static_cast<double>(info.f_blocks) * static_cast<double>(info.f_frsize);
    const double free = static_cast<double>(info.f_bfree) * static_cast<double>(info.f_frsize);
    use.is_known = true;
    use.capacity = all / 0x1p30 > 1024 ? format_text("%.1f TiB", all / 0x1p40) : format_text("%.1f GiB", all / 0x1p30);
    use.used_percent = share(free, all);
    use.inodes = format_text("%.1f Mi", static_cast<double>(info.f_files) / 0x1p20);
    use.inodes_percent = share(static_cast<double>(info.f_ffree), static_cast<double>(info.f_files));
    return use;
}

}  // namespace sonde::dialects::ior
