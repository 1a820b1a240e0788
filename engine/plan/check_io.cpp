// SPDX-License-Identifier: Apache-2.0
#include "plan/check_io.hpp"

#include "plan/plan_error.hpp"

#include <tuple>
#include <utility>

namespace sonde::plan {
namespace {

constexpr Bytes sector = 512;

void check_direct_io(const std::string& where, const Access& a) {
    for (const TransferSize& entry : a.sizes) {
        if (entry.size % sector != 0) {
            throw_member_error(where + ".access.sizes",
                               "holds " + std::to_string(entry.size) + " B, but direct I/O needs multiples of 512 B");
        }
    }
    for (const auto& [size, name] : {std::pair{a.transfer, "transfer"}, std::pair{a.offset, "offset"},
                                     std::pair{a.gap, "gap"}, std::pair{a.stride, "stride"}}) {
        if (size % sector != 0) {
            throw_member_error(where + ".access." + name,
                               "is " + std::to_string(size) +
                                   " B, but direct I/O needs a multiple of 512 B (or more: the file "
                                   "system is asked when the run starts)");
        }
    }
}

}  // namespace

void check_io(const std::string& where, const Data& data, const Tasks& tasks, const Capabilities& capabilities) {
    const Io& io = data.io;
    for (const auto& [used, name, trait] :
         {std::tuple{io.collective, "collective", &BackendTraits::supports_collective},
          std::tuple{io.view, "view", &BackendTraits::supports_views},
          std::tuple{!io.hints.empty(), "hints", &BackendTraits::needs_mpi},
          std::tuple{io.sqpoll, "sqpoll", &BackendTraits::supports_polling},
          std::tuple{io.iopoll, "iopoll", &BackendTraits::supports_polling},
          std::tuple{!io.gpus.empty(), "gpus", &BackendTraits::stores_data},
          std::tuple{io.chunk > 0, "chunk", &BackendTraits::supports_chunks},
          std::tuple{io.alignment > 0, "alignment", &BackendTraits::supports_chunks},
          std::tuple{io.collective_metadata, "collective_metadata", &BackendTraits::supports_chunks}}) {
        if (used && !(capabilities.find_traits(data.backend).*trait)) {
            throw_member_error(where + ".io." + name, "needs backend " + capabilities.list_backends_with(trait) +
                                                          ", not \"" + data.backend + "\"");
        }
    }
    if (io.gpus.empty() && capabilities.find_traits(data.backend).transfers_gpu_memory) {
        throw_member_error(where + ".io.gpus",
                           "is missing: backend \"" + data.backend + "\" moves data to and from GPUs, like [0]");
    }
    if (io.iopoll && !io.direct) {
        throw_member_error(where + ".io.iopoll", "needs io.direct = true: a device is polled, not the page cache");
    }
    if (io.iopoll && io.fsync == Fsync::per_op) {
        throw_member_error(where + ".io.iopoll",
                           "does not go with io.fsync = \"per_op\": a polled ring only reads and writes");
    }
    if (io.collective && tasks.threads > 1) {
        throw_member_error(where + ".io.collective",
                           "needs tasks.threads = 1: one task a process takes part in a collective call");
    }
    if (io.collective && data.files.mapping != Mapping::shared) {
        throw_member_error(where + ".io.collective",
                           "needs files.mapping = \"shared\": collective calls join all tasks on one file");
    }
    if (io.view && (data.access.order != AccessOrder::sequential || data.files.mapping != Mapping::shared)) {
        throw_member_error(where + ".io.view", "needs order = \"sequential\" and files.mapping = \"shared\"");
    }
    if (io.direct) {
        check_direct_io(where, data.access);
    }
}

}  // namespace sonde::plan
