// SPDX-License-Identifier: Apache-2.0
#include "model/error_line.hpp"

#include "model/candidate_table.hpp"
#include "model/table.hpp"
#include "system/raw.hpp"
#include "system/system_log.hpp"

#include <cstddef>

namespace sonde::buffer {

namespace {

constexpr const char* priority = "<11>";  // user, error
constexpr std::size_t priority_length = 4;

}  // namespace

void begin_error_line(system::Text& line) noexcept {
    line << priority << "sonde: ";
}

void log_error_line(const system::Text& line) noexcept {
    // Descriptor 2 may be a file of the program by now.
    if (get_candidate_state(2) == not_examined && !is_registered_descriptor(2)) {
        raw::call(SYS_write, 2, raw::pointer_to_number(line.data() + priority_length),
                  static_cast<long>(line.length() - priority_length));
    }
    system::send_to_system_log(line.data(), line.length() - 1);
}

void log_unwritable_file(const char* variable, const char* path) noexcept {
    system::Text text;
    begin_error_line(text);
    text << variable << ": " << path
         << " cannot be written. It must be a regular file that only this user can write, in an existing folder.\n";
    log_error_line(text);
}

}  // namespace sonde::buffer
