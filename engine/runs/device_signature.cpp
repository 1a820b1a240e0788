// SPDX-License-Identifier: Apache-2.0
// libblkid of util-linux, loaded at run time: the engine builds and runs where it is not installed. The numbers are
// those of blkid.h, which util-linux keeps for all releases of libblkid.so.1.
#include "runs/device_signature.hpp"

#include <dlfcn.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace sonde::runs {
namespace {

struct BlkidProbe;  // blkid_struct_probe

constexpr int report_type = 1 << 5;       // BLKID_SUBLKS_TYPE
constexpr int report_usage = 1 << 7;      // BLKID_SUBLKS_USAGE
constexpr int accept_bad_sums = 1 << 10;  // BLKID_SUBLKS_BADCSUM: a damaged file system may be worth a repair

/// The functions of libblkid that are called.
struct BlkidLibrary {
    BlkidProbe* (*new_probe)() = nullptr;
    void (*free_probe)(BlkidProbe*) = nullptr;
    int (*set_device)(BlkidProbe*, int, std::int64_t, std::int64_t) = nullptr;
    int (*enable_superblocks)(BlkidProbe*, int) = nullptr;
    int (*set_superblocks_flags)(BlkidProbe*, int) = nullptr;
    int (*enable_partitions)(BlkidProbe*, int) = nullptr;
    int (*probe_next)(BlkidProbe*) = nullptr;
    int (*find_value)(BlkidProbe*, const char*, const char**, std::size_t*) = nullptr;
};

template <class Function>
bool find_symbol(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function != nullptr;
}

BlkidLibrary load_blkid() {
    void* library = dlopen("libblkid.so.1", RTLD_NOW | RTLD_LOCAL);
    BlkidLibrary blkid;
    if (library == nullptr || !find_symbol(library, "blkid_new_probe", blkid.new_probe) ||
        !find_symbol(library, "blkid_free_probe", blkid.free_probe) ||
        !find_symbol(library, "blkid_probe_set_device", blkid.set_device) ||
        !find_symbol(library, "blkid_probe_enable_superblocks", blkid.enable_superblocks) ||
        !find_symbol(library, "blkid_probe_set_superblocks_flags", blkid.set_superblocks_flags) ||
        !find_symbol(library, "blkid_probe_enable_partitions", blkid.enable_partitions) ||
        !find_symbol(library, "blkid_do_probe", blkid.probe_next) ||
        !find_symbol(library, "blkid_probe_lookup_value", blkid.find_value)) {
        throw std::runtime_error(
            "libblkid.so.1 cannot be loaded, which tells what a device holds: install libblkid1 "
            "(Debian) or libblkid (Fedora)");
    }
    return blkid;
}

std::string find_value(const BlkidLibrary& blkid, BlkidProbe* probe, const char* name) {
    const char* text = nullptr;
    return blkid.find_value(probe, name, &text, nullptr) == 0 && text != nullptr ? text : std::string();
}

std::string name_usage(const std::string& usage) {
    return usage == "raid"         ? "a member of a RAID or volume group"
           : usage == "crypto"     ? "encrypted data"
           : usage == "filesystem" ? "a file system"
                                   : "data";
}

}  // namespace

std::string find_device_signature(int descriptor) {
    const BlkidLibrary blkid = load_blkid();
    const std::unique_ptr<BlkidProbe, void (*)(BlkidProbe*)> probe(blkid.new_probe(), blkid.free_probe);
    errno = 0;
    if (probe == nullptr || blkid.set_device(probe.get(), descriptor, 0, 0) != 0) {
        throw std::runtime_error(std::string("libblkid cannot read it: ") + std::strerror(errno));
    }
    blkid.enable_superblocks(probe.get(), 1);
    blkid.set_superblocks_flags(probe.get(), report_type | report_usage | accept_bad_sums);
    blkid.enable_partitions(probe.get(), 1);
    const int result = blkid.probe_next(probe.get());
    if (result < 0) {
        throw std::runtime_error(std::string("libblkid cannot read it: ") + std::strerror(errno));
    }
    if (result > 0) {
        return {};
    }
    if (const std::string table = find_value(blkid, probe.get(), "PTTYPE"); !table.empty()) {
        return "a partition table (" + table + ")";
    }
    const std::string type = find_value(blkid, probe.get(), "TYPE");
    return name_usage(find_value(blkid, probe.get(), "USAGE")) + (type.empty() ? "" : " (" + type + ")");
}

}  // namespace sonde::runs
