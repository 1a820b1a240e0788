// SPDX-License-Identifier: Apache-2.0
#include "plan/check_objects.hpp"

#include "plan/choices.hpp"
#include "plan/plan_error.hpp"
#include "plan/units.hpp"

#include <string>
#include <utility>

namespace sonde::plan {
namespace {

constexpr Bytes smallest_part = 5ULL << 20U;  // of a multipart upload of S3, but for the last one

/// Whether each object is written by one operation.
bool is_written_at_once(const Access& access) {
    const bool one_segment = access.segments ? *access.segments == 1
                                             : access.volume && access.volume->of == Amount::Basis::bytes &&
                                                   access.volume->per == Amount::Granularity::task &&
                                                   access.volume->bytes <= access.block;
    return one_segment && access.block == access.transfer;
}

void check_object_writes(const std::string& where, const Phase& phase) {
    const Data& data = phase.data;
    const Access& access = data.access;
    if (phase.op == Op::rewrite || phase.op == Op::mixed || phase.open == OpenMode::overwrite) {
        throw_member_error(
            where + (phase.open == OpenMode::overwrite ? ".open" : ".op"),
            "changes parts of objects, which S3 cannot do: use op = \"write\", which stores objects anew");
    }
    if (data.files.mapping == Mapping::shared || data.files.mapping == Mapping::per_node ||
        data.files.mapping == Mapping::per_group) {
        throw_member_error("data.files.mapping",
                           "lets several tasks write one object, which S3 stores as a whole: use \"per_task\" "
                           "or \"many\"");
    }
    if (access.gap != 0 || access.offset != 0 || access.order == AccessOrder::stride ||
        access.order == AccessOrder::random_replace) {
        throw_member_error(phase.data_at + ".access",
                           "leaves holes, but an object has none: write without gap, offset, stride and "
                           "random_replace");
    }
    if (is_written_at_once(access)) {
        return;
    }
    if (access.transfer < smallest_part) {
        throw_member_error(
            phase.data_at + ".access.transfer",
            "is " + format_bytes(access.transfer) + ", but parts of an object are at least " +
                format_bytes(smallest_part) +
                " (S3): use larger transfers, or one transfer an object (block = transfer, files.mapping = \"many\")");
    }
    const bool ends_early = phase.stop.time || phase.stop.stonewall || phase.stop.first_done || phase.stop.operations;
    if (ends_early && access.order != AccessOrder::sequential) {
        throw_member_error(where + ".stop",
                           "may end with parts missing in the middle of an object: use order = \"sequential\"");
    }
}

void check_object_data(const std::string& where, const Phase& phase) {
    const Io& io = phase.data.io;
    if (io.fsync != Fsync::none) {
        throw_member_error(
            phase.data_at + ".io.fsync",
            "has no meaning for S3: a request ends when the service has stored the object. Leave it out");
    }
    if (io.sync_flag != SyncFlag::none || io.direct) {
        throw_member_error(phase.data_at + (io.direct ? ".io.direct" : ".io.sync"),
                           "is for files: S3 has no page cache of this node. Leave it out");
    }
    if (io.preallocate != Preallocate::none) {
        throw_member_error(phase.data_at + ".io.preallocate", "is for files: an object has its size when it is stored");
    }
    if (writes(phase.op)) {
        check_object_writes(where, phase);
    }
}

void check_object_names(const std::string& where, const Phase& phase) {
    const Meta& meta = *phase.meta;
    switch (phase.op) {
        case Op::mktree:
        case Op::rmtree:
            throw_member_error(where + ".op",
                               std::string("= \"") + operation_name(phase.op) +
                                   "\" is for directories, but S3 has prefixes, which nobody makes or removes: leave "
                                   "the phase out");
        case Op::rename:
            throw_member_error(where + ".op",
                               "= \"rename\" does not exist in S3, which copies and deletes instead: leave it out");
        case Op::open_close:
            throw_member_error(where + ".op",
                               "= \"open_close\" does not exist in S3: use \"stat\" (HEAD) or \"read\" (GET)");
        case Op::walk:
            throw_member_error(where + ".op",
                               "= \"walk\" goes from directory to directory, which S3 does not have: use \"readdir\", "
                               "which lists prefixes");
        default:
            break;
    }
    if (phase.op == Op::read_items && meta.read_bytes == 0) {
        throw_member_error(where + ".meta.file.read",
                           "is 0: S3 opens nothing without reading it: give the bytes to read");
    }
    if (meta.objects == Objects::directories) {
        throw_member_error(where + ".meta.objects",
                           "= \"directories\" do not exist in S3: use \"files\", which are objects");
    }
    if (meta.fsync || meta.sync || meta.create_call == MakeFile::mknod || meta.direct ||
        meta.stat_call == StatCall::statx) {
        const char* member = meta.fsync                            ? ".meta.file.fsync"
                             : meta.sync                           ? ".meta.sync"
                             : meta.create_call == MakeFile::mknod ? ".meta.file.create"
                             : meta.direct                         ? ".meta.file.direct"
                                                                   : ".meta.lookup.stat";
        throw_member_error(where + member, "asks for a system call that S3 has nothing like: leave it out");
    }
}

}  // namespace

bool has_object_target(const TargetSettings& target) {
    return target.path.starts_with("s3://");
}

void check_object_target(const Plan& plan, const Capabilities& capabilities) {
    const TargetSettings& target = plan.target;
    const std::string names = capabilities.list_backends_with(&BackendTraits::stores_objects);
    for (const Phase& phase : plan.phases) {
        if (capabilities.find_traits(phase.data.backend).stores_objects != has_object_target(target)) {
            throw_member_error(
                has_object_target(target) ? phase.data_at + ".backend" : "target.path",
                has_object_target(target)
                    ? "is \"" + phase.data.backend + "\", but the target is a bucket: use \"" + names + "\""
                    : "is " + target.path + ", but backend \"" + phase.data.backend +
                          "\" needs a bucket: write s3://BUCKET/PREFIX");
        }
    }
    if (!has_object_target(target)) {
        if (target.s3) {
            throw_member_error("target.s3",
                               "describes a service, but target.path is a directory: write s3://BUCKET/PREFIX");
        }
        return;
    }
    const Files& files = plan.data.files;
    for (const auto& [is_given, member] :
         {std::pair{target.use_existing, "target.use_existing"},
          std::pair{target.striping.has_value(), "target.striping"},
          std::pair{!files.paths.empty(), "data.files.paths"}, std::pair{!files.across.empty(), "data.files.across"}}) {
        if (is_given) {
            throw_member_error(member, "is for directories, but the target is a bucket: leave it out");
        }
    }
}

void check_objects(const Plan& plan, std::size_t index, const Capabilities& capabilities) {
    const Phase& phase = plan.phases[index];
    if (!capabilities.find_traits(phase.data.backend).stores_objects) {
        return;
    }
    const std::string where = "phases[" + std::to_string(index) + "]";
    for (const Treatment& treatment : phase.before) {
        if (treatment.kind == "remount") {
            throw_member_error(where + ".before", "has a remount, but the target is a bucket: leave it out");
        }
    }
    if (phase.meta) {
        check_object_names(where, phase);
    } else {
        check_object_data(where, phase);
    }
}

}  // namespace sonde::plan
