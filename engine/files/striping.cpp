// SPDX-License-Identifier: Apache-2.0
// Knows the calls and forms: LL_IOC_LOV_SETSTRIPE and struct lov_user_md of lustre_user.h, the ioctl that makes a file
// with stripe hints of beegfs_ioctl.h and `beegfs-ctl --setpattern`, the layout attributes of CephFS.
#include "files/striping.hpp"

#include "files/file_systems.hpp"
#include "files/stripe_layout.hpp"
#include "plan/units.hpp"
#include "records/program_output.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sonde::files {
namespace {

constexpr std::uint32_t raid0 = 1;
constexpr std::uint16_t lov_all = 0xffff, lov_anywhere = 0xffff;
constexpr std::size_t longest_lustre_pool = lov_pool_bytes - 1;
// Harmless for a new file elsewhere: both flags mean something for devices only.
constexpr int lov_delay_create = O_NOCTTY | O_ASYNC;
const unsigned long lov_setstripe = _IOW('f', 154, long);  // NOLINT(google-runtime-int): part of the number

struct BeegfsHints {
    const char* name;
    unsigned mode, targets, chunk;  // 0: as the directory has it
};
const unsigned long beegfs_make_file = _IOW('f', 27, BeegfsHints);

[[noreturn]] void refuse_stripes(const std::string& sentence) {
    throw std::invalid_argument(sentence);
}

void check_lustre(const plan::Striping& wanted) {
    if (wanted.pool.size() > longest_lustre_pool) {
        refuse_stripes("target.striping.pool is \"" + wanted.pool +
                       "\", but names of Lustre's pools have at most 15 letters");
    }
}

void check_beegfs(const plan::Striping& wanted, bool own_directory) {
    if (wanted.start) {
        refuse_stripes("target.striping.start: BeeGFS chooses the first target itself; leave it out");
    }
    if (wanted.count && *wanted.count < 0) {
        refuse_stripes("target.striping.count is -1, but BeeGFS has no word for all targets: say how many");
    }
    if (wanted.size && (*wanted.size & (*wanted.size - 1)) != 0) {
        refuse_stripes("target.striping.size: chunks of BeeGFS are powers of two from 64 KiB");
    }
    if (!wanted.pool.empty() && !own_directory) {
        refuse_stripes(
            "target.striping.pool: BeeGFS has pools for directories only; let the run make its own, or prepare it");
    }
    if (!std::all_of(wanted.pool.begin(), wanted.pool.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        refuse_stripes("target.striping.pool is \"" + wanted.pool +
                       "\", but BeeGFS wants the number of a pool (`beegfs-ctl --liststoragepools`)");
    }
}

void check_ceph(const plan::Striping& wanted) {
    if (wanted.start) {
        refuse_stripes("target.striping.start: CephFS places objects by a hash; leave it out");
    }
    if (wanted.count && *wanted.count < 0) {
        refuse_stripes("target.striping.count is -1, but CephFS has no word for all targets: say how many");
    }
}

std::string shown(const plan::Striping& wanted) {
    std::string text;
    const auto add = [&text](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
    if (wanted.count) {
        add("count " + std::to_string(*wanted.count));
    }
    if (wanted.size) {
        add("size " + plan::format_bytes(*wanted.size));
    }
    if (!wanted.pool.empty()) {
        add("pool " + wanted.pool);
    }
    if (wanted.start) {
        add("start " + std::to_string(*wanted.start));
    }
    return text;
}

/// Throws for a rejected request, with the meaning of `error`.
[[noreturn]] void not_granted(const plan::Striping& wanted, const std::string& path, int error) {
    const char* advice = error == EINVAL || error == ENOENT || error == ERANGE || error == EDOM
                             ? ": is there such a target or pool, and such a size?"
                         : error == EPERM || error == EACCES ? ": this user may not set it there"
                         : error == EOPNOTSUPP || error == ENOTTY
                             ? ": the file system does not stripe files; leave target.striping out"
                             : "";
    refuse_stripes("target.striping (" + shown(wanted) + ") was not granted at " + path + ": " + std::strerror(error) +
                   advice);
}

/// 0 or an errno. The attribute is newer than the ioctl, and all that a file system in user space can have.
int set_lustre(int descriptor, const plan::Striping& wanted) {
    std::string form = lustre_form(wanted);
    if (::ioctl(descriptor, lov_setstripe, form.data()) == 0) {
        return 0;
    }
    if (errno != ENOTTY && errno != ENOSYS && errno != EOPNOTSUPP) {
        return errno;
    }
    return ::fsetxattr(descriptor, "lustre.lov", form.data(), form.size(), 0) == 0 ? 0 : errno;
}

int set_ceph(int descriptor, const plan::Striping& wanted, const char* attribute) {
    const std::string form = ceph_form(wanted);
    return ::fsetxattr(descriptor, attribute, form.data(), form.size(), 0) == 0 ? 0 : errno;
}

int make_beegfs_file(const plan::Striping& wanted, const ConfinedDirectory& parent, const std::string& name) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    BeegfsHints hints{name.c_str(), 0666U & ~mask, static_cast<unsigned>(wanted.count.value_or(0)),
                      static_cast<unsigned>(wanted.size.value_or(0))};
    return ::ioctl(parent.descriptor(), beegfs_make_file, &hints) == 0 ? 0 : errno;
}

void put_number(std::string& into, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) {
        into.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    }
}

}  // namespace

std::string lustre_form(const plan::Striping& wanted) {
    std::string form;
    put_number(form, wanted.pool.empty() ? lov_magic_v1 : lov_magic_v3, 4);
    put_number(form, raid0, 4);
    put_number(form, 0, 8);
    put_number(form, 0, 8);
    put_number(form, wanted.size.value_or(0), 4);
    put_number(form, wanted.count && *wanted.count < 0 ? lov_all : static_cast<std::uint64_t>(wanted.count.value_or(0)),
               2);
    put_number(form, wanted.start.value_or(lov_anywhere), 2);
    if (!wanted.pool.empty()) {
        std::string name = wanted.pool;
        name.resize(lov_pool_bytes, '\0');
        form += name;
    }
    return form;
}

std::string ceph_form(const plan::Striping& wanted) {
    constexpr plan::Bytes usual_object = 4U << 20U;
    std::string form;
    const auto add = [&form](const std::string& word) { form += (form.empty() ? "" : " ") + word; };
    if (wanted.size) {
        // Objects hold whole stripe units: the usual 4 MiB, or the next multiple above.
        const plan::Bytes object = (usual_object + *wanted.size - 1) / *wanted.size * *wanted.size;
        add("stripe_unit=" + std::to_string(*wanted.size));
        add("object_size=" + std::to_string(object));
    }
    if (wanted.count) {
        add("stripe_count=" + std::to_string(*wanted.count));
    }
    if (!wanted.pool.empty()) {
        add("pool=" + wanted.pool);
    }
    return form;
}

std::vector<std::string> beegfs_command(const plan::Striping& wanted, const std::string& directory) {
    std::vector<std::string> arguments{"beegfs-ctl", "--setpattern"};
    if (wanted.count) {
        arguments.push_back("--numtargets=" + std::to_string(*wanted.count));
    }
    if (wanted.size) {
        arguments.push_back("--chunksize=" + std::to_string(*wanted.size));
    }
    if (!wanted.pool.empty()) {
        arguments.push_back("--storagepoolid=" + wanted.pool);
    }
    arguments.push_back(directory);
    return arguments;
}

void check_striping(const plan::Striping& wanted, const std::string& file_system, const std::string& path,
                    bool own_directory) {
    switch (family_of(file_system)) {
        case Family::lustre:
            return check_lustre(wanted);
        case Family::beegfs:
            return check_beegfs(wanted, own_directory);
        case Family::ceph:
            return check_ceph(wanted);
        default:
            break;
    }
    refuse_stripes(
        "target.striping: " + path + " is on " + (file_system.empty() ? "an unknown file system" : file_system) +
        ", which is not told how to stripe files: leave it out, or name a target on Lustre, BeeGFS or CephFS");
}

void stripe_directory(const plan::Striping& wanted, const std::string& file_system,
                      const ConfinedDirectory& directory) {
    const std::string& path = directory.path();
    if (family_of(file_system) == Family::beegfs) {
        const records::ProgramOutput output = records::run_and_read(beegfs_command(wanted, path));
        if (!output.ok()) {
            refuse_stripes("target.striping (" + shown(wanted) + ") was not granted at " + path +
                           ": beegfs-ctl --setpattern says: " + output.first_line());
        }
        return;
    }
    const int error = !directory ? directory.error()
                      : family_of(file_system) == Family::lustre
                          ? set_lustre(directory.descriptor(), wanted)
                          : set_ceph(directory.descriptor(), wanted, "ceph.dir.layout");
    if (error != 0) {
        not_granted(wanted, path, error);
    }
}

void make_striped_file(const plan::Striping& wanted, const std::string& file_system, const ConfinedDirectory& parent,
                       const std::string& name) {
    const std::string path = parent.path() + "/" + name;
    int error = parent.error();
    if (error == 0 && family_of(file_system) == Family::beegfs) {
        error = make_beegfs_file(wanted, parent, name);
    } else if (error == 0) {
        const bool lustre = family_of(file_system) == Family::lustre;
        const Descriptor file = parent.create_file(name, 0666, lustre ? lov_delay_create : 0);
        error = *file < 0 ? -*file : lustre ? set_lustre(*file, wanted) : set_ceph(*file, wanted, "ceph.file.layout");
        if (*file >= 0 && error != 0) {
            parent.unlink(name);
        }
    }
    if (error == EEXIST) {
        refuse_stripes("cannot make " + path + " with the stripes of target.striping: it is there already");
    }
    if (error != 0) {
        not_granted(wanted, path, error);
    }
}

std::string difference(const plan::Striping& wanted, const StripeLayout& granted) {
    std::string text;
    const auto add = [&text](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
    if (granted.components.size() != 1) {
        return "a layout of " + std::to_string(granted.components.size()) + " components instead of one";
    }
    const LayoutComponent& component = granted.components.front();
    if (wanted.count && *wanted.count > 0 && component.count != static_cast<std::uint64_t>(*wanted.count)) {
        add(std::to_string(component.count) + (component.count == 1 ? " target" : " targets") + " instead of " +
            std::to_string(*wanted.count));
    }
    if (wanted.size && component.stripe != *wanted.size) {
        add("stripes of " + plan::format_bytes(component.stripe) + " instead of " + plan::format_bytes(*wanted.size));
    }
    if (!wanted.pool.empty() && component.pool != wanted.pool) {
        add((component.pool.empty() ? "no pool" : "pool " + component.pool) + " instead of pool " + wanted.pool);
    }
    if (wanted.start && !component.targets.empty() && component.targets.front() != target_name(*wanted.start)) {
        add("the first byte on " + component.targets.front() + " instead of " + target_name(*wanted.start));
    }
    return text;
}

}  // namespace sonde::files
