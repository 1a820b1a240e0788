// SPDX-License-Identifier: Apache-2.0
#include "workloads/operation_log.hpp"

#include "backends/forwarding_channel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sonde::workloads {
namespace {

using backends::Completion;
using backends::IoRequest;

class LoggedChannel final : public backends::ForwardingChannel, private backends::NameOperations {
 public:
    LoggedChannel(std::unique_ptr<Channel> inner, const std::string& path, const meters::Clock& clock, unsigned slots)
        : ForwardingChannel(std::move(inner)), clock_(clock), path_(path), start_ticks_(slots) {
        entries_.reserve(capacity);
        file_ = std::fopen(path.c_str(), "w");
        if (file_ == nullptr || std::fputs("time,runtime,tp\n", file_) < 0) {
            disable_log();
        }
    }
    ~LoggedChannel() override {
        flush();
        if (file_ != nullptr) {
            std::fclose(file_);
        }
    }

    int close(std::uint16_t file) override {
        const int result = inner_->close(file);
        flush();
        return result;
    }

    std::int64_t transfer(const IoRequest& operation) noexcept override {
        const std::uint64_t from = clock_.ticks();
        const std::int64_t moved = inner_->transfer(operation);
        add(from, clock_.ticks(), moved);
        return moved;
    }
    bool submit(const IoRequest& operation) noexcept override {
        start_ticks_[operation.slot] = clock_.ticks();
        return inner_->submit(operation);
    }
    std::size_t reap(std::span<Completion> done) noexcept override {
        const std::size_t count = inner_->reap(done);
        const std::uint64_t to = clock_.ticks();
        for (std::size_t i = 0; i < count; ++i) {
            add(start_ticks_[done[i].slot], to, done[i].result);
        }
        return count;
    }

    NameOperations* name_operations() override {
        name_operations_ = inner_->name_operations();
        return name_operations_ == nullptr ? nullptr : this;
    }

    void begin_timed_part() noexcept override {
        inner_->begin_timed_part();
        begin_ = clock_.ticks();
    }
    std::vector<std::string> missing_features() const override {
        std::vector<std::string> all = inner_->missing_features();
        if (!problem_.empty()) {
            all.push_back(problem_);
        }
        return all;
    }

 private:
    struct LogEntry {
        std::uint64_t from = 0, to = 0;
        std::int64_t bytes = 0;
    };

    /// An operation on a name. One that moves no bytes counts as one, so that its rate is in operations.
    template <class Call>
    auto time_call(std::size_t bytes, Call call) noexcept {
        const std::uint64_t from = clock_.ticks();
        const auto result = call();
        add(from, clock_.ticks(), static_cast<std::int64_t>(std::max<std::size_t>(1, bytes)));
        return result;
    }
    backends::Directory open_directory(backends::Directory parent, const char* name) noexcept override {
        return name_operations_->open_directory(parent, name);
    }
    void close_directory(backends::Directory directory) noexcept override {
        name_operations_->close_directory(directory);
    }
    int make_file(backends::Directory parent, const char* name,
                  const backends::NewFileOptions& options) noexcept override {
        return time_call(options.content.size(), [&] { return name_operations_->make_file(parent, name, options); });
    }
    int make_directory(backends::Directory parent, const char* name) noexcept override {
        return time_call(0, [&] { return name_operations_->make_directory(parent, name); });
    }
    int stat_entry(backends::Directory parent, const char* name,
                   const backends::StatOptions& options) noexcept override {
        return time_call(0, [&] { return name_operations_->stat_entry(parent, name, options); });
    }
    int read_attributes(backends::Directory parent, const char* name, const backends::StatOptions& options,
                        backends::EntryAttributes& attributes) noexcept override {
        return time_call(0, [&] { return name_operations_->read_attributes(parent, name, options, attributes); });
    }
    int open_close(backends::Directory parent, const char* name) noexcept override {
        return time_call(0, [&] { return name_operations_->open_close(parent, name); });
    }
    std::int64_t read_file(backends::Directory parent, const char* name, std::span<std::byte> into) noexcept override {
        return time_call(into.size(), [&] { return name_operations_->read_file(parent, name, into); });
    }
    int rename(backends::Directory parent, const char* name, const char* to) noexcept override {
        return time_call(0, [&] { return name_operations_->rename(parent, name, to); });
    }
    int remove_file(backends::Directory parent, const char* name) noexcept override {
        return time_call(0, [&] { return name_operations_->remove_file(parent, name); });
    }
    int remove_directory(backends::Directory parent, const char* name) noexcept override {
        return time_call(0, [&] { return name_operations_->remove_directory(parent, name); });
    }
    std::int64_t read_entries(backends::Directory directory, std::span<std::byte> buffer) noexcept override {
        return time_call(0, [&] { return name_operations_->read_entries(directory, buffer); });
    }
    bool next_entry(std::span<const std::byte> entries, std::size_t& position,
                    backends::DirectoryEntry& entry) const noexcept override {
        return name_operations_->next_entry(entries, position, entry);
    }
    int sync_file_system(backends::Directory directory) noexcept override {
        return name_operations_->sync_file_system(directory);
    }

    static constexpr std::size_t capacity = 1U << 16U;

    void add(std::uint64_t from, std::uint64_t to, std::int64_t bytes) noexcept {
        if (entries_.size() == capacity) {
            flush();
        }
        entries_.push_back({from, to, bytes});
    }

    void flush() noexcept {
        for (const LogEntry& entry : entries_) {
            const double start = static_cast<double>(clock_.duration_ns(entry.from - begin_)) / 1e9;
            const double spent = static_cast<double>(clock_.duration_ns(entry.to - entry.from)) / 1e9;
            const double rate = spent > 0 && entry.bytes > 0 ? static_cast<double>(entry.bytes) / spent : 0;
            if (file_ != nullptr && std::fprintf(file_, "%.8e,%.8e,%e\n", start, spent, rate) < 0) {
                disable_log();
            }
        }
        entries_.clear();
        if (file_ != nullptr && std::fflush(file_) != 0) {
            disable_log();
        }
    }

    void disable_log() noexcept {
        problem_ = "the operations are not logged: " + path_ + " cannot be written (" + std::strerror(errno) + ")";
        if (file_ != nullptr) {
            std::fclose(file_);
            file_ = nullptr;
        }
    }

    NameOperations* name_operations_ = nullptr;
    const meters::Clock& clock_;
    std::string path_, problem_;
    std::FILE* file_ = nullptr;
    std::uint64_t begin_ = 0;
    std::vector<std::uint64_t> start_ticks_;
    std::vector<LogEntry> entries_;
};

}  // namespace

std::unique_ptr<backends::Channel> wrap_in_operation_log(std::unique_ptr<backends::Channel> channel,
                                                         const std::string& path, const meters::Clock& clock,
                                                         unsigned slots) {
    return std::make_unique<LoggedChannel>(std::move(channel), path, clock, slots);
}

}  // namespace sonde::workloads
