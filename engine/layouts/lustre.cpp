// SPDX-License-Identifier: Apache-2.0
#include "layouts/lustre.hpp"

#include "layouts/layout_system.hpp"
#include "layouts/text_fields.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace sonde::layouts {
namespace {

using Pattern = LayoutComponent::Pattern;

constexpr const char* lov_attribute = "lustre.lov";
// LOV_USER_MAGIC_V1, _V3, LOV_USER_MAGIC_COMP_V1, LOV_USER_MAGIC_FOREIGN.
constexpr std::uint32_t lov_magic_v1 = 0x0BD10BD0, lov_magic_v3 = 0x0BD30BD0;
constexpr std::size_t lov_pool_bytes = 16;  // LOV_MAXPOOLNAME and the NUL behind it
constexpr std::size_t max_pool_letters = lov_pool_bytes - 1;
constexpr std::uint32_t raid0 = 1;
constexpr std::uint16_t lov_all = 0xffff, lov_anywhere = 0xffff;
// O_LOV_DELAY_CREATE: harmless for a new file elsewhere, since both flags mean something for devices only.
constexpr int lov_delay_create = O_NOCTTY | O_ASYNC;
const unsigned long set_stripe_request = _IOW('f', 154, long);  // NOLINT(google-runtime-int): LL_IOC_LOV_SETSTRIPE

constexpr std::uint32_t magic_composite = 0x0BD60BD0, magic_foreign = 0x0BD70BD0;
constexpr std::uint32_t pattern_mdt = 0x100, pattern_released = 0x80000000;
constexpr std::uint32_t entry_stale = 0x1;
constexpr std::size_t head_v1 = 32, head_v3 = 48, object_bytes = 24;
constexpr std::size_t head_composite = 32, entry_bytes = 48;
constexpr std::uint32_t any_target = 0xffffffff;

/// Bytes that are read by position, not by casting: the attribute may end anywhere.
class AttributeReader {
 public:
    explicit AttributeReader(std::string_view all) : bytes_(all) {}
    template <class T>
    T read_value_at(std::size_t position) const {
        if (position > bytes_.size() || bytes_.size() - position < sizeof(T)) {
            throw_invalid_attribute("ends after " + std::to_string(bytes_.size()) + " bytes, before its number at " +
                                    std::to_string(position));
        }
        T value = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            value = static_cast<T>(
                value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes_[position + i])) << (8 * i)));
        }
        return value;
    }
    AttributeReader subrange(std::size_t position, std::size_t length) const {
        if (position > bytes_.size() || bytes_.size() - position < length) {
            throw_invalid_attribute("names a part outside its " + std::to_string(bytes_.size()) + " bytes");
        }
        return AttributeReader(bytes_.substr(position, length));
    }
    std::string read_text(std::size_t position, std::size_t length) const {
        const std::string_view text = subrange(position, length).bytes_;
        return std::string(text.substr(0, std::min(text.find('\0'), text.size())));
    }
    std::size_t size() const { return bytes_.size(); }

 private:
    std::string_view bytes_;
};

/// lov_user_md_v1 or _v3.
LayoutComponent parse_plain_component(const AttributeReader& bytes) {
    const auto magic = bytes.read_value_at<std::uint32_t>(0);
    if (magic != lov_magic_v1 && magic != lov_magic_v3) {
        std::array<char, 16> text{};
        std::snprintf(text.data(), text.size(), "0x%08x", magic);
        throw_invalid_attribute(std::string("begins with the unknown number ") + text.data());
    }
    const auto pattern = bytes.read_value_at<std::uint32_t>(4);
    LayoutComponent component;
    component.pattern = (pattern & pattern_released) != 0 ? Pattern::released
                        : (pattern & pattern_mdt) != 0    ? Pattern::metadata_server
                                                          : Pattern::raid0;
    component.stripe_bytes = bytes.read_value_at<std::uint32_t>(24);
    component.requested_stripes = bytes.read_value_at<std::uint16_t>(28);
    const std::size_t head = magic == lov_magic_v3 ? head_v3 : head_v1;
    if (magic == lov_magic_v3) {
        component.pool = bytes.read_text(head_v1, lov_pool_bytes);
    }
    // A component without data has a count and no objects.
    const bool chosen = component.pattern == Pattern::raid0 && bytes.size() > head;
    for (std::size_t i = 0; chosen && i < component.requested_stripes; ++i) {
        const auto index = bytes.read_value_at<std::uint32_t>(head + i * object_bytes + 20);
        component.targets.push_back(index == any_target ? "?" : make_lustre_target_name(index));
    }
    if (chosen && component.stripe_bytes == 0) {
        throw_invalid_attribute("has stripes of 0 bytes");
    }
    return component;
}

StripeLayout parse_composite(const AttributeReader& bytes) {
    StripeLayout layout;
    layout.kind = "lustre";
    const auto entries = bytes.read_value_at<std::uint16_t>(14);
    layout.mirror_count = bytes.read_value_at<std::uint16_t>(16) + 1U;
    for (std::size_t i = 0; i < entries; ++i) {
        const std::size_t entry = head_composite + i * entry_bytes;
        const auto start = bytes.read_value_at<std::uint64_t>(entry + 8);
        const auto end = bytes.read_value_at<std::uint64_t>(entry + 16);
        const AttributeReader part = bytes.subrange(bytes.read_value_at<std::uint32_t>(entry + 24),
                                                    bytes.read_value_at<std::uint32_t>(entry + 28));
        LayoutComponent component;
        if (part.read_value_at<std::uint32_t>(0) == magic_foreign) {
            component.pattern = Pattern::foreign;
        } else {
            component = parse_plain_component(part);
        }
        component.start = start;
        component.end = end;
        component.is_stale = (bytes.read_value_at<std::uint32_t>(entry + 4) & entry_stale) != 0;
        if (end <= start) {
            throw_invalid_attribute("has a component that ends before it begins");
        }
        layout.components.push_back(std::move(component));
    }
    return layout;
}

void check_lustre(const plan::Striping& requested) {
    if (requested.pool.size() > max_pool_letters) {
        throw_invalid_striping("target.striping.pool is \"" + requested.pool +
                               "\", but names of Lustre's pools have at most 15 letters");
    }
}

/// Returns 0 or an errno. The attribute is newer than the ioctl; a file system in user space has the attribute only.
int set_lustre_striping(int descriptor, const plan::Striping& requested) {
    std::string encoded = encode_lustre_striping(requested);
    if (::ioctl(descriptor, set_stripe_request, encoded.data()) == 0) {
        return 0;
    }
    if (errno != ENOTTY && errno != ENOSYS && errno != EOPNOTSUPP) {
        return errno;
    }
    return ::fsetxattr(descriptor, lov_attribute, encoded.data(), encoded.size(), 0) == 0 ? 0 : errno;
}

void append_number(std::string& encoded, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) {
        encoded.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    }
}

int stripe_lustre_directory(const plan::Striping& requested, const files::ConfinedDirectory& directory) {
    return directory ? set_lustre_striping(directory.descriptor(), requested) : directory.error();
}

int make_lustre_file(const plan::Striping& requested, const files::ConfinedDirectory& parent, const std::string& name) {
    const auto set = [&requested](int descriptor) { return set_lustre_striping(descriptor, requested); };
    return make_file_and_stripe(parent, name, lov_delay_create, set);
}

std::optional<StripeLayout> read_lustre_attribute(const std::string& path, const CephPlacement* /*placement*/) {
    const auto value = read_extended_attribute(path, lov_attribute);
    return value ? std::optional(parse_lustre_layout(*value)) : std::nullopt;
}

MissingLayout explain_missing_lustre_layout(const std::string& path) {
    return explain_missing_attribute(path, lov_attribute);
}

constexpr StripingSetter lustre_striping{[](const plan::Striping& requested, bool) { check_lustre(requested); },
                                         stripe_lustre_directory, make_lustre_file};

}  // namespace

std::string make_lustre_target_name(std::uint32_t index) {
    std::array<char, 16> name{};
    std::snprintf(name.data(), name.size(), "OST%04x", index);
    return name.data();
}

StripeLayout parse_lustre_layout(std::string_view value) {
    const AttributeReader bytes(value);
    const auto magic = bytes.read_value_at<std::uint32_t>(0);
    if (magic == magic_composite) {
        return parse_composite(bytes);
    }
    StripeLayout layout;
    layout.kind = "lustre";
    if (magic == magic_foreign) {
        layout.components.emplace_back().pattern = Pattern::foreign;
    } else {
        layout.components.push_back(parse_plain_component(bytes));
    }
    return layout;
}

std::string encode_lustre_striping(const plan::Striping& requested) {
    std::string encoded;
    append_number(encoded, requested.pool.empty() ? lov_magic_v1 : lov_magic_v3, 4);
    append_number(encoded, raid0, 4);
    append_number(encoded, 0, 8);
    append_number(encoded, 0, 8);
    append_number(encoded, requested.size.value_or(0), 4);
    append_number(
        encoded,
        requested.count && *requested.count < 0 ? lov_all : static_cast<std::uint64_t>(requested.count.value_or(0)), 2);
    append_number(encoded, requested.start.value_or(lov_anywhere), 2);
    if (!requested.pool.empty()) {
        std::string name = requested.pool;
        name.resize(lov_pool_bytes, '\0');
        encoded += name;
    }
    return encoded;
}

extern const LayoutSystem lustre_system;
const LayoutSystem lustre_system{
    .types = {"lustre", "fuse.sonde"},
    .max_queries = 1024,
    .read_attribute = read_lustre_attribute,
    .query = nullptr,
    .explain_missing = explain_missing_lustre_layout,
    .striping = &lustre_striping,
    .readable_while_timed = true,
};

}  // namespace sonde::layouts
