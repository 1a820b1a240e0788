// SPDX-License-Identifier: Apache-2.0
#include "layouts/gluster.hpp"

#include "layouts/layout_system.hpp"
#include "layouts/text_fields.hpp"
#include "records/mounts.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <system_error>

namespace sonde::layouts {
namespace {

constexpr const char* pathinfo = "trusted.glusterfs.pathinfo";

std::string read_first_word(const std::string& path) {
    std::ifstream file(path);
    std::string word;
    file >> word;
    return word;
}

/// Bytes of a shard of the volume that is mounted at `point`; 0: its files are not cut into shards. The client shows
/// its translators in `.meta`.
std::uint64_t read_shard_bytes(const std::string& point) {
    std::error_code none;
    for (const auto& translator : std::filesystem::directory_iterator(point + "/.meta/graphs/active", none)) {
        if (translator.path().filename().string().ends_with("-shard")) {
            const std::string bytes = read_first_word(translator.path().string() + "/options/shard-block-size");
            return parse_gluster_size(bytes.empty() ? "64MB" : bytes);
        }
    }
    return 0;
}

/// The same for the volume that holds the file; each volume is examined once.
std::uint64_t find_shard_bytes(const std::string& path) {
    static std::mutex lock;
    static std::map<dev_t, std::uint64_t> cache;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        return 0;
    }
    const std::lock_guard<std::mutex> held(lock);
    const auto match = cache.find(status.st_dev);
    if (match != cache.end()) {
        return match->second;
    }
    const std::optional<records::Mount> mount = records::find_mount(path);
    return cache[status.st_dev] = mount ? read_shard_bytes(mount->point) : 0;
}

std::optional<StripeLayout> read_gluster_attribute(const std::string& path, const CephPlacement* /*placement*/) {
    const auto value = read_extended_attribute(path, pathinfo);
    return value ? std::optional(parse_gluster_layout(*value, find_shard_bytes(path))) : std::nullopt;
}

MissingLayout explain_missing_gluster_layout(const std::string& path) {
    MissingLayout missing = explain_missing_attribute(path, pathinfo);
    if (!missing.reason.empty()) {
        missing.advice = ::geteuid() == 0 ? "a volume that disperses does not tell; nor does one whose servers are gone"
                                          : "Gluster tells root only: run the first node's process as root";
    }
    return missing;
}

}  // namespace

std::uint64_t parse_gluster_size(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
    constexpr std::array<std::string_view, 5> units{"", "KB", "MB", "GB", "TB"};
    const auto* const match = std::find(units.begin(), units.end(), unit);
    return error != std::errc() || match == units.end() ? 0 : value << (10 * (match - units.begin()));
}

StripeLayout parse_gluster_layout(std::string_view value, std::uint64_t shard_bytes) {
    StripeLayout layout;
    layout.kind = "gluster";
    LayoutComponent& first = layout.components.emplace_back();
    first.pattern = LayoutComponent::Pattern::whole;
    // (<DISTRIBUTE:v-dht> (<REPLICATE:v-replicate-0> <POSIX(/bricks/1):server1:/bricks/1/f> <POSIX(/bricks/2):…>))
    constexpr std::string_view mark = "<POSIX(";
    for (std::size_t position = value.find(mark); position != std::string_view::npos;
         position = value.find(mark, position + 1)) {
        const std::size_t brick = position + mark.size();
        const std::size_t closed = value.find("):", brick);
        const std::size_t colon = closed == std::string_view::npos ? closed : value.find(':', closed + 2);
        if (colon == std::string_view::npos) {
            throw_invalid_attribute("names a brick without its server");
        }
        first.targets.push_back(std::string(value.substr(closed + 2, colon - closed - 2)) + ":" +
                                std::string(value.substr(brick, closed - brick)));
    }
    if (first.targets.empty()) {
        throw_invalid_attribute("names no brick");
    }
    first.requested_stripes = static_cast<std::uint32_t>(first.targets.size());
    if (shard_bytes > 0) {
        first.end = shard_bytes;
        LayoutComponent& others = layout.components.emplace_back();
        others.start = shard_bytes;
        others.pattern = LayoutComponent::Pattern::foreign;
    }
    return layout;
}

extern const LayoutSystem gluster_system;
const LayoutSystem gluster_system{
    .types = {"glusterfs", "fuse.glusterfs"},
    .max_queries = 1024,
    .read_attribute = read_gluster_attribute,
    .query = nullptr,
    .explain_missing = explain_missing_gluster_layout,
    .striping = nullptr,
    .readable_while_timed = true,
};

}  // namespace sonde::layouts
