// SPDX-License-Identifier: Apache-2.0
#include "files/object_run.hpp"

#include "files/file_map.hpp"
#include "objects/bulk_removal.hpp"

#include <cerrno>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace sonde::files {
namespace {

/// Decides which keys below the prefix of a run are its own.
class KeyNaming {
 public:
    KeyNaming(const std::string& directory, const Manifest& manifest)
        : map_(directory, manifest.files, manifest.tasks), has_data_(manifest.has_data) {
        for (const TreeRule& rule : manifest.trees.rules) {
            namings_.emplace_back(rule, manifest.tasks);
        }
    }

    /// `relative`: the key without the prefix of the run.
    bool is_run_key(const std::string& relative) const {
        std::vector<std::string> parts;
        for (std::size_t begin = 0; begin <= relative.size();) {
            const std::size_t slash = std::min(relative.find('/', begin), relative.size());
            parts.push_back(relative.substr(begin, slash - begin));
            begin = slash + 1;
        }
        if (has_data_ && parts.size() == 1 && map_.contains_file("", parts[0])) {
            return true;
        }
        if (has_data_ && parts.size() == 2 && map_.contains_folder(parts[0]) &&
            map_.contains_file(parts[0], parts[1])) {
            return true;
        }
        for (const TreeNaming& naming : namings_) {
            if (is_item(naming, parts)) {
                return true;
            }
        }
        return false;
    }

 private:
    /// top / root of a branch / subdirectories … / item
    static bool is_item(const TreeNaming& naming, const std::vector<std::string>& parts) {
        if (parts.size() < 3 || !naming.is_top(parts[0])) {
            return false;
        }
        const std::string branch = naming.branch_of_root(parts[1]);
        std::uint64_t directory = 0;
        for (std::size_t i = 2; !branch.empty() && i + 1 < parts.size(); ++i) {
            const auto number = naming.find_subdirectory(branch, directory, parts[i]);
            if (!number) {
                return false;
            }
            directory = *number;
        }
        return !branch.empty() && naming.classify_name(directory, parts.back()) == TreeNaming::NameKind::file;
    }

    FileMap map_;
    bool has_data_;
    std::vector<TreeNaming> namings_;
};

}  // namespace

ObjectRun::ObjectRun(const plan::TargetSettings& target, const std::string& directory)
    : directory_(directory),
      settings_(objects::read_store_settings(directory, target.s3.value_or(plan::ObjectStore{}))),
      client_(settings_, 0),
      prefix_(settings_.prefix.empty() ? std::string() : settings_.prefix + "/") {
}

void ObjectRun::save(const Manifest& manifest, bool is_new) {
    std::string text;
    if (is_new && client_.get_text(manifest_key(), text) == 0) {
        throw std::runtime_error(directory_ +
                                 " already exists: choose another target.directory, or run `sonde clean` " +
                                 "if a killed run left it");
    }
    text = manifest.to_text();
    const std::span<const char> characters(text);
    if (client_.put(manifest_key(), std::as_bytes(characters), false) < 0) {
        throw std::runtime_error("cannot write the manifest " + directory_ + "/" + manifest_name + ": " +
                                 client_.failure());
    }
}

std::optional<Manifest> ObjectRun::load() {
    std::string text;
    const int failed = client_.get_text(manifest_key(), text);
    if (failed == -ENOENT) {
        return std::nullopt;
    }
    const std::string name = directory_ + "/" + manifest_name;
    if (failed < 0) {
        throw std::runtime_error("the manifest " + name + " cannot be read: " + client_.failure());
    }
    try {
        return Manifest::parse(text);
    } catch (const std::exception&) {
        throw std::runtime_error(name + " is no manifest of Sonde: look at what is below it and remove it by hand");
    }
}

Removal ObjectRun::remove(const Manifest& manifest, bool is_dry_run) {
    Removal removal;
    const KeyNaming naming(directory_, manifest);
    const auto is_own = [&](const std::string& key) {
        return key.starts_with(prefix_) && naming.is_run_key(key.substr(prefix_.size()));
    };
    bool has_foreign = false;
    std::string token;
    do {
        std::vector<objects::ListedObject> page;
        if (client_.list(prefix_, false, token, page) < 0) {
            removal.remaining.push_back(directory_ + " cannot be listed: " + client_.failure());
            return removal;
        }
        std::vector<std::string> keys;
        for (const objects::ListedObject& object : page) {
            if (is_own(object.key)) {
                keys.push_back(object.key);
                removal.bytes += object.bytes;
            } else {
                has_foreign = has_foreign || object.key != manifest_key();
            }
        }
        if (is_dry_run) {
            removal.files += keys.size();
            continue;
        }
        const objects::BulkRemoval done = objects::remove_objects(settings_, keys);
        removal.files += done.removed;
        removal.remaining.insert(removal.remaining.end(), done.failures.begin(), done.failures.end());
    } while (!token.empty());
    if (has_foreign) {
        removal.remaining.push_back(directory_ + " holds objects that this run did not make: left alone");
    }
    // Services without a list of uploads have no uploads to abort.
    const std::int64_t aborted = is_dry_run ? 0 : client_.abort_uploads(prefix_, is_own);
    if (aborted < 0 && aborted != -EOPNOTSUPP && aborted != -ENOENT) {
        removal.remaining.push_back("multipart uploads below " + directory_ +
                                    " cannot be aborted: " + client_.failure());
    }
    if (!is_dry_run && removal.remaining.empty()) {
        remove_manifest();
    }
    return removal;
}

void ObjectRun::remove_manifest() {
    static_cast<void>(client_.remove(manifest_key()));
}

}  // namespace sonde::files
