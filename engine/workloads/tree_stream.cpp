// SPDX-License-Identifier: Apache-2.0
#include "workloads/tree_stream.hpp"

#include "payload/compare.hpp"
#include "plan/operations.hpp"

#include <cerrno>

namespace sonde::workloads {

template <class Time>
TreeStream<Time>::TreeStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock,
                             meters::StreamMeter& meter, std::unique_ptr<backends::Channel> channel,
                             std::unique_ptr<Buffers> buffers)
    : TimedStream<Time>(job, team, clock, meter, std::move(channel)),
      tree_(*job.tree),
      meta_(*job.phase->meta),
      op_(job.phase->op),
      name_operations_(*this->channel_->name_operations()),
      buffers_(std::move(buffers)),
      items_(tree_, meta_, name_operations_, op_ == plan::Op::rename),
      planned_(job.file_count) {
    if (op_ == plan::Op::create) {
        length_ = static_cast<std::uint32_t>(meta_.write_bytes);
    } else if (op_ == plan::Op::read_items) {
        length_ = static_cast<std::uint32_t>(meta_.read_bytes);
    } else if (op_ == plan::Op::readdir) {
        listing_.resize(std::size_t{64} << 10U);
    }
}

template <class Time>
template <class Call, class Name>
bool TreeStream<Time>::time_each_call(std::uint64_t& next, std::size_t count, unsigned kind, const char* operation,
                                      Call call, Name name_of) {
    meters::Histogram& histogram = this->meter_.histogram(kind);
    std::uint64_t last = this->now();
    for (std::size_t k = 0; k < count; ++k) {
        const std::int64_t result = call(k);
        const std::uint64_t end = this->now();
        if (result < 0) [[unlikely]] {
            if (result == -ENOENT && meta_.continues_on_missing) {
                ++this->meter_.failed_operations;
                this->report_error(name_of(k), operation, ENOENT, 0, {});
                ++next;
                last = this->now();
                continue;
            }
            this->publish_counts();
            this->fail_operation(name_of(k), operation, static_cast<int>(-result), 0);
            return false;
        }
        histogram.add(this->time_.duration_ns(end - last));
        ++this->operations_done_;
        ++next;
        this->bytes_done_ += length_;
        const bool passed = this->count_operation(last, end, length_);
        last = end;
        if (op_ == plan::Op::read_items && this->job_.verify) [[unlikely]] {
            verify_item(k, result);
            last = this->now();
        }
        if (passed || this->should_stop()) [[unlikely]] {
            this->publish_counts();
            return false;
        }
    }
    this->publish_counts();
    return true;
}

/// IOR's content for a file: made for its task once, and marked with its number.
template <class Time>
std::span<const std::byte> TreeStream<Time>::make_packet(std::size_t k) {
    const TreePart& part = items_.part();
    const plan::Payload& settings = this->job_.phase->data.payload;
    const payload::IorPacket packet{settings.kind, static_cast<std::uint32_t>(settings.seed),
                                    static_cast<std::uint32_t>(part.owner)};
    if (packet_of_ != part.owner) {
        // At the beginning of a page, as O_DIRECT wants it.
        constexpr std::size_t page = 4096;
        packet_memory_.resize(length_ + page);
        const auto address = reinterpret_cast<std::uintptr_t>(packet_memory_.data());
        packet_ = {packet_memory_.data() + (page - address % page) % page, length_};
        payload::fill_packet(packet, packet_.data(), length_);
        packet_of_ = part.owner;
    }
    const patterns::TreeShape::ItemPosition item =
        tree_.shape.locate_item(TreeJob::original_item(part, items_.item(k)));
    payload::set_packet_offset(packet, packet_.data(), length_,
                               meta_.window ? tree_.content_number(item.copy, item.number) : item.number);
    return packet_;
}

/// The data to write to the k-th file of the batch.
template <class Time>
std::span<const std::byte> TreeStream<Time>::make_content(std::size_t k) {
    if (length_ == 0) {
        return {};
    }
    if (payload::is_ior_payload(this->job_.phase->data.payload.kind)) {
        return make_packet(k);
    }
    payload::PayloadImage& image = buffers_->image(0);
    image.set_origin({tree_.file_number(items_.part(), items_.item(k)), items_.part().generation});
    return {image.content_at(0, length_), length_};
}

template <class Time>
bool TreeStream<Time>::create(std::uint64_t& next, std::size_t count) {
    const auto path = [this](std::size_t k) { return items_.path(k); };
    if (meta_.objects == plan::Objects::directories) {
        return time_each_call(
            next, count, meters::kind_mkdir, "create",
            [this](std::size_t k) -> std::int64_t {
                const int result = name_operations_.make_directory(items_.open_directory(), items_.name(k));
                return result == -EEXIST && !meta_.exclusive ? 0 : result;
            },
            path);
    }
    backends::NewFileOptions options;
    options.exclusive = meta_.exclusive && !meta_.shared_single;
    options.fsync = meta_.fsync;
    options.use_mknod = meta_.create_call == plan::MakeFile::mknod;
    return time_each_call(
        next, count, meters::kind_create, "create",
        [this, &options](std::size_t k) -> std::int64_t {
            options.content = make_content(k);
            const int result = name_operations_.make_file(items_.open_directory(), items_.name(k), options);
            return options.use_mknod && result == -EEXIST && !options.exclusive ? 0 : result;
        },
        path);
}

template <class Time>
bool TreeStream<Time>::read(std::uint64_t& next, std::size_t count) {
    const auto path = [this](std::size_t k) { return items_.path(k); };
    if (length_ == 0) {
        return time_each_call(
            next, count, meters::kind_open_close, "open",
            [this](std::size_t k) -> std::int64_t {
                return name_operations_.open_close(items_.open_directory(), items_.name(k));
            },
            path);
    }
    return time_each_call(
        next, count, meters::kind_read, "read",
        [this](std::size_t k) -> std::int64_t {
            const std::int64_t got = name_operations_.read_file(
                items_.open_directory(), items_.name(k), {buffers_->read_buffer(0), static_cast<std::size_t>(length_)});
            // With verification a short file is a mismatch, which is reported there.
            return got >= 0 && got < length_ && !this->job_.verify ? -ENODATA : got;
        },
        path);
}

/// The first item is put aside, each further one takes the name of the one before, and the first takes the name of the
/// last but one: as many calls as items, and the same names afterwards.
template <class Time>
bool TreeStream<Time>::rename(std::uint64_t& next, std::size_t count) {
    const std::uint64_t last = items_.part().item_count - 1;
    return time_each_call(
        next, count, meters::kind_rename, "rename",
        [this, last](std::size_t k) -> std::int64_t {
            const std::uint64_t item = items_.item(k);
            if (item == 0) {
                first_ring_path_ = std::string(items_.name(k)) + "-XX";
                previous_ring_path_ = first_ring_path_;
            }
            const char* from = item > 0 && item == last ? first_ring_path_.c_str() : items_.name(k);
            const int result = name_operations_.rename(items_.open_directory(), from, previous_ring_path_.c_str());
            previous_ring_path_ = items_.name(k);
            return result;
        },
        [this](std::size_t k) { return items_.path(k); });
}

template <class Time>
bool TreeStream<Time>::run_batch(std::uint64_t& next, std::size_t count) {
    const auto path = [this](std::size_t k) { return items_.path(k); };
    switch (op_) {
        case plan::Op::create:
            return create(next, count);
        case plan::Op::stat_items: {
            const backends::StatOptions options{meta_.stat_call != plan::StatCall::lstat,
                                                meta_.stat_call == plan::StatCall::statx, meta_.statx_fields,
                                                meta_.statx_sync_flag};
            return time_each_call(
                next, count, meters::kind_stat, "stat",
                [this, &options](std::size_t k) -> std::int64_t {
                    return name_operations_.stat_entry(items_.open_directory(), items_.name(k), options);
                },
                path);
        }
        case plan::Op::open_close:
        case plan::Op::read_items:
            return read(next, count);
        case plan::Op::rename:
            return rename(next, count);
        case plan::Op::remove_items:
            if (meta_.objects == plan::Objects::directories) {
                return time_each_call(
                    next, count, meters::kind_rmdir, "remove",
                    [this](std::size_t k) -> std::int64_t {
                        return name_operations_.remove_directory(items_.open_directory(), items_.name(k));
                    },
                    path);
            }
            return time_each_call(
                next, count, meters::kind_remove, "remove",
                [this](std::size_t k) -> std::int64_t {
                    return name_operations_.remove_file(items_.open_directory(), items_.name(k));
                },
                path);
        default:
            return false;
    }
}

template <class Time>
bool TreeStream<Time>::run_items(std::uint64_t& next, std::uint64_t to, std::uint64_t pass) {
    while (next < to) {
        const std::int64_t count = items_.make_names(next, to, pass);
        if (count < 0) {
            this->fail_operation(items_.failed_path(), "open", static_cast<int>(-count), 0);
            return false;
        }
        if (!run_batch(next, static_cast<std::size_t>(count))) {
            return false;
        }
    }
    return true;
}

/// One directory from opening to closing. Entries found, or -errno.
template <class Time>
std::int64_t TreeStream<Time>::list_directory(const char* path) {
    const backends::Directory directory = name_operations_.open_directory(tree_.directory, path);
    if (directory < 0) {
        return directory;
    }
    std::int64_t entries = 0;
    std::int64_t got = 0;
    while ((got = name_operations_.read_entries(directory, listing_)) > 0) {
        std::size_t position = 0;
        for (backends::DirectoryEntry entry;
             name_operations_.next_entry({listing_.data(), static_cast<std::size_t>(got)}, position, entry);) {
            ++entries;
        }
    }
    name_operations_.close_directory(directory);
    return got < 0 ? got : entries;
}

template <class Time>
bool TreeStream<Time>::run_directories(std::uint64_t& next, std::uint64_t to) {
    const auto path = [this](std::size_t k) { return directories_[k]; };
    while (next < to) {
        const std::size_t count = std::min<std::uint64_t>(directories_.size(), to - next);
        for (std::size_t k = 0; k < count; ++k) {
            tree_.set_directory_path(next + k, op_ == plan::Op::rmtree, directories_[k]);
        }
        bool succeeded = false;
        if (op_ == plan::Op::mktree) {
            succeeded = time_each_call(
                next, count, meters::kind_mkdir, "create",
                [this](std::size_t k) -> std::int64_t {
                    const int result =
                        name_operations_.make_directory(tree_.directory, tree_.to_relative_path(directories_[k]));
                    return result == -EEXIST && tree_.may_exist ? 0 : result;
                },
                path);
        } else if (op_ == plan::Op::rmtree) {
            succeeded = time_each_call(
                next, count, meters::kind_rmdir, "remove",
                [this](std::size_t k) -> std::int64_t {
                    return name_operations_.remove_directory(tree_.directory, tree_.to_relative_path(directories_[k]));
                },
                path);
        } else {
            succeeded = time_each_call(
                next, count, meters::kind_readdir, "list",
                [this](std::size_t k) -> std::int64_t {
                    const std::int64_t entries = list_directory(tree_.to_relative_path(directories_[k]));
                    this->meter_.listed_entries += entries > 0 ? static_cast<std::uint64_t>(entries) : 0;
                    return entries;
                },
                path);
        }
        if (!succeeded) {
            return false;
        }
    }
    return true;
}

/// The mismatch in the k-th file and its position; empty if the content is correct.
template <class Time>
std::string TreeStream<Time>::describe_difference(std::size_t k, std::int64_t got, std::uint64_t& offset) {
    const std::byte* data = buffers_->read_buffer(0);
    const TreePart& part = items_.part();
    if (payload::is_ior_payload(this->job_.phase->data.payload.kind)) {
        const std::span<const std::byte> right = make_packet(k);
        const auto first = std::mismatch(right.begin(), right.begin() + got, data).first;
        offset = static_cast<std::uint64_t>(first - right.begin());
        return offset == length_ ? std::string()
               : got < length_ && offset == static_cast<std::uint64_t>(got)
                   ? "nothing: the file ends there, at " + std::to_string(got) + " B of " + std::to_string(length_)
                   : std::string("other bytes than IOR's content for this file");
    }
    payload::PayloadImage& expected = buffers_->expected();
    expected.set_origin({tree_.file_number(part, items_.item(k)), part.generation});
    const auto wrong = payload::compare(expected, data, 0, length_, static_cast<std::uint64_t>(got));
    offset = wrong ? wrong->offset : 0;
    return wrong ? std::string(payload::kind_name(wrong->kind)) + " data: " + wrong->describe_mismatch : std::string();
}

template <class Time>
void TreeStream<Time>::verify_item(std::size_t k, std::int64_t got) {
    if (items_.part().generation == 0 && !payload::is_ior_payload(this->job_.phase->data.payload.kind)) {
        return;
    }
    const std::uint64_t from = this->time_.read_ticks();
    this->meter_.checked_bytes += length_;
    std::uint64_t offset = 0;
    const std::string wrong = describe_difference(k, got, offset);
    if (!wrong.empty()) {
        ++this->meter_.mismatch_count;
        this->report_error(items_.path(k), "verify", 0, offset,
                           wrong + " (written by task " + std::to_string(items_.part().owner) + ")");
    }
    const std::uint64_t spent = this->time_.read_ticks() - from;
    this->paused_ticks_ += spent;
    this->meter_.verify_ns += static_cast<std::int64_t>(this->time_.duration_ns(spent));
}

/// The file system is made durable as part of the phase.
template <class Time>
void TreeStream<Time>::sync() {
    const std::uint64_t from = this->now();
    const backends::Directory directory =
        name_operations_.open_directory(tree_.directory, tree_.to_relative_path(tree_.root));
    const int result = directory < 0 ? directory : name_operations_.sync_file_system(directory);
    if (directory >= 0) {
        name_operations_.close_directory(directory);
    }
    const std::uint64_t to = this->now();
    this->meter_.parts_of_work[meters::part_fsync].add(this->ns_since_phase_start(from),
                                                       this->ns_since_phase_start(to));
    this->meter_.histogram(meters::kind_fsync).add(this->time_.duration_ns(to - from));
    if (result < 0) {
        this->fail_operation(tree_.root, "sync", -result, 0);
    }
}

template <class Time>
bool TreeStream<Time>::run_pass(std::uint64_t pass) {
    const std::uint64_t from = this->now();
    std::uint64_t next = 0;
    bool succeeded = true;
    while (succeeded && next < planned_ && this->operations_done_ < this->wearout_target_) {
        const std::uint64_t to = next + std::min(planned_ - next, this->wearout_target_ - this->operations_done_);
        succeeded = plan::acts_on_directories(op_) ? run_directories(next, to) : run_items(next, to, pass);
        if (!succeeded && !this->failed_ && !this->should_stop() && this->must_wear_out()) {
            this->continue_to_wearout_target();
            succeeded = true;
        }
    }
    if (pass == 0) {
        this->meter_.next_operation = next;
        this->meter_.completed_files = next;
    }
    this->meter_.file_operations = this->operations_done_;
    this->meter_.bytes[op_ == plan::Op::create ? 1 : 0] = this->bytes_done_;
    this->meter_.parts_of_work[meters::part_transfer].add(this->ns_since_phase_start(from),
                                                          this->ns_since_phase_start(this->now()));
    if (meta_.sync && !this->failed_ && !this->should_stop() && !this->needs_another_pass()) {
        sync();
    }
    return succeeded && next == planned_ && !this->failed_;
}

template class TreeStream<MachineClock>;
template class TreeStream<ChannelClock>;

}  // namespace sonde::workloads
