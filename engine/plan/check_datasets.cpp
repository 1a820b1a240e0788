// SPDX-License-Identifier: Apache-2.0
#include "plan/check_datasets.hpp"

#include "plan/choices.hpp"
#include "plan/plan_error.hpp"

#include <utility>

namespace sonde::plan {
namespace {

void check_dataset_access(const Phase& phase, Bytes element) {
    const Access& access = phase.data.access;
    const std::string where = phase.data_at + ".access";
    const std::string backend = "backend \"" + phase.data.backend + "\"";
    for (const auto& [is_used, name] :
         {std::pair{access.gap != 0, ".gap"}, std::pair{access.offset != 0, ".offset"},
          std::pair{access.order == AccessOrder::stride, ".order"}, std::pair{access.within.has_value(), ".within"}}) {
        if (is_used) {
            throw_member_error(where + name,
                               "has no meaning for " + backend +
                                   ", whose datasets hold block after block: leave it out, or use mpiio or posix");
        }
    }
    bool is_whole = access.transfer % element == 0 && access.block % element == 0;
    for (const TransferSize& entry : access.sizes) {
        is_whole = is_whole && entry.size % element == 0;
    }
    if (!is_whole) {
        throw_member_error(where + ".transfer",
                           "must be a multiple of " + std::to_string(element) + " B with " + backend +
                               ", whose datasets have elements of that size (block and sizes too)");
    }
}

/// Rules for datasets with rows of one transfer each.
void check_dataset_rows(const Phase& phase, const Phase* source) {
    const Access& access = phase.data.access;
    const std::string where = phase.data_at + ".access";
    const std::string backend = "backend \"" + phase.data.backend + "\"";
    if (!access.sizes.empty()) {
        throw_member_error(where + ".sizes", "does not go with " + backend +
                                                 ", whose variable has rows of one transfer each: leave it out");
    }
    if (access.transfer == 0 || access.block % access.transfer != 0) {
        throw_member_error(where + ".block", "must be a multiple of transfer with " + backend +
                                                 ", whose variable has rows of one transfer each");
    }
    if (source != nullptr && source->data.access.transfer != access.transfer) {
        throw_member_error(where + ".transfer",
                           "differs from that of phase \"" + source->id + "\", but a row of " + backend +
                               " has the size of the transfers that wrote it: use the same transfer");
    }
}

void check_dataset_io(const Phase& phase, Bytes element) {
    const Io& io = phase.data.io;
    const std::string where = phase.data_at + ".io";
    const std::string backend = "backend \"" + phase.data.backend + "\"";
    if (io.fsync == Fsync::per_op) {
        throw_member_error(where + ".fsync",
                           "= \"per_op\" does not go with " + backend +
                               ", where a flush takes all tasks: use \"end\" or \"end_timed_separately\"");
    }
    if (io.preallocate != Preallocate::none) {
        throw_member_error(where + ".preallocate",
                           "does not go with " + backend + ", which allocates its datasets itself: leave it out");
    }
    if (io.chunk % element != 0) {
        throw_member_error(where + ".chunk", "is " + std::to_string(io.chunk) + " B, but must be a multiple of " +
                                                 std::to_string(element) + " B");
    }
    if (io.chunk > phase.data.access.block && phase.data.files.mapping != Mapping::shared) {
        throw_member_error(where + ".chunk", "is larger than block (" + std::to_string(phase.data.access.block) +
                                                 " B), which is a whole dataset of a file per task: make it smaller");
    }
}

}  // namespace

void check_datasets(const std::string& where, const Plan& plan, const Phase& phase, const Phase* source,
                    const Capabilities& capabilities) {
    const Bytes element = capabilities.find_traits(phase.data.backend).dataset_element_bytes;
    const std::string backend = "backend \"" + phase.data.backend + "\"";
    if (element == 0) {
        return;
    }
    if (plan.tasks.threads > 1) {
        throw_member_error("tasks.threads", "must be 1 with " + backend +
                                                ", whose library allows one thread a process: use more "
                                                "processes");
    }
    if (phase.op != Op::write && phase.op != Op::rewrite && phase.op != Op::read && !acts_on_files(phase.op)) {
        throw_member_error(where + ".op", std::string("= \"") + operation_name(phase.op) + "\" does not go with " +
                                              backend +
                                              ", which has write, rewrite, read, stat and remove: use mpiio or posix");
    }
    const Mapping mapping = phase.data.files.mapping;
    if (mapping == Mapping::per_node || mapping == Mapping::per_group) {
        throw_member_error("data.files.mapping", "lets some of the tasks share a file, but with " + backend +
                                                     " either all do or none: use \"shared\" or \"per_task\"");
    }
    check_dataset_access(phase, element);
    check_dataset_io(phase, element);
    if (capabilities.find_traits(phase.data.backend).has_transfer_dimension && !acts_on_files(phase.op)) {
        check_dataset_rows(phase, source);
    }
    if (source != nullptr && !acts_on_files(phase.op) && source->data.access.block != phase.data.access.block) {
        throw_member_error(phase.data_at + ".access.block",
                           "differs from that of phase \"" + source->id + "\", but a dataset of " + backend +
                               " has the size of the blocks that wrote it: use the same block");
    }
}

}  // namespace sonde::plan
