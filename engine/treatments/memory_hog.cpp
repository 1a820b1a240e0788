// SPDX-License-Identifier: Apache-2.0
// The treatment `memory_hog`: allocates and locks anonymous memory.
#include "treatments/memory_hog.hpp"

#include "records/cgroup.hpp"
#include "records/environment.hpp"
#include "records/system_file.hpp"
#include "treatments/treatment_kind.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sonde::treatments {

namespace {

constexpr std::uint64_t mebibyte = 1ULL << 20U;

/// Memory that can be allocated without reclaiming that of other processes: of the node and of the control group.
std::uint64_t read_available_bytes() {
    const std::string text = records::read_system_file("/proc/meminfo");
    std::uint64_t bytes = records::find_bytes(text, "MemAvailable").value_or(0);
    const records::CgroupLimits limits = records::read_cgroup_limits();
    if (limits.memory_bytes) {
        const std::uint64_t used = limits.memory_used_bytes.value_or(0);
        const std::uint64_t firm = used - std::min(used, limits.memory_cache_bytes.value_or(0));
        bytes = std::min(bytes, *limits.memory_bytes - std::min(firm, *limits.memory_bytes));
    }
    return bytes;
}

/// Every page gets different content, because equal pages could be merged or compressed.
void touch_pages(std::byte* base, std::uint64_t bytes) {
    static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    for (std::uint64_t position = 0; position < bytes; position += page) {
        const auto mark = reinterpret_cast<std::uintptr_t>(base + position) * 0x9E3779B97F4A7C15ULL;
        std::memcpy(base + position, &mark, sizeof mark);
    }
}

}  // namespace

std::string format_gibibytes(std::uint64_t bytes) {
    const std::uint64_t hundredths = bytes * 100 / (1ULL << 30U);
    const std::string fraction = std::to_string(hundredths % 100);
    return std::to_string(hundredths / 100) + "." + (fraction.size() < 2 ? "0" : "") + fraction + " GiB";
}

HeldMemory hold_memory(double fraction, const StopPredicate& stop) {
    const std::uint64_t memory = records::read_node_memory();
    const std::uint64_t reserve = std::min(std::max(256 * mebibyte, memory / 50), memory / 4);
    HeldMemory result;
    // A multiple of 1 MiB, so that every piece can be locked.
    result.requested_bytes = static_cast<std::uint64_t>(static_cast<double>(memory) * fraction) / mebibyte * mebibyte;
    if (result.requested_bytes == 0) {
        return result;
    }
    void* base = ::mmap(nullptr, result.requested_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        result.problem = std::string("the kernel gave no address space (") + std::strerror(errno) + ")";
        return result;
    }
    const std::uint64_t length = result.requested_bytes;
    result.memory = std::shared_ptr<void>(base, [length](void* memory_base) { ::munmap(memory_base, length); });
    result.locked = true;
    constexpr std::uint64_t step = 32 * mebibyte;
    while (result.bytes < result.requested_bytes) {
        const std::uint64_t piece = std::min(step, result.requested_bytes - result.bytes);
        if (stop && stop()) {
            result.stopped = true;
            break;
        }
        if (read_available_bytes() < reserve + piece) {
            result.problem = "more would leave less than " + format_gibibytes(reserve) + " to everything else";
            break;
        }
        auto* page = static_cast<std::byte*>(base) + result.bytes;
        touch_pages(page, piece);
        result.locked = result.locked && ::mlock(page, piece) == 0;
        result.bytes += piece;
    }
    return result;
}

namespace {

using Status = TreatmentResult::Status;

std::string missing_fraction(const plan::Treatment& treatment) {
    return treatment.fraction <= 0 ? "fraction is missing: which share of the memory to hold (0 to 0.95)" : "";
}

TreatmentResult apply_hog(const TreatmentRequest& context) {
    HeldMemory memory = hold_memory(context.treatment.fraction, context.stop);
    if (memory.requested_bytes == 0) {
        return make_result(Status::skipped, "No memory was to be held: set `fraction` above 0.");
    }
    TreatmentResult result;
    result.memory_held = std::move(memory.memory);
    result.text = "Holds " + format_gibibytes(memory.bytes) + " of memory" + (memory.locked ? ", locked." : ".");
    if (!memory.locked && memory.bytes > 0) {
        result.text += " It is not locked and could be swapped out (raise `ulimit -l`).";
    }
    if (memory.stopped) {
        result.outcome = Status::failed;
        result.text += " Stopped before it was all.";
    } else if (!memory.problem.empty()) {
        result.outcome = Status::failed;
        result.text += " " + format_gibibytes(memory.requested_bytes) + " were wanted, but " + memory.problem + ".";
    }
    return result;
}

}  // namespace

extern const TreatmentKind memory_hog_treatment;
const TreatmentKind memory_hog_treatment{
    .capability = {.name = "memory_hog", .explain_missing_member = missing_fraction}, .apply = apply_hog};

}  // namespace sonde::treatments
