// SPDX-License-Identifier: Apache-2.0
// The objects of a run in a bucket: all below its prefix, including its manifest.
#pragma once

#include "files/manifest.hpp"
#include "files/removal_steps.hpp"
#include "objects/client.hpp"
#include "plan/plan.hpp"

#include <optional>
#include <string>

namespace sonde::files {

class ObjectRun {
 public:
    /// `directory`: "s3://bucket/prefix/name". Throws std::runtime_error when libcurl or the credentials are missing.
    ObjectRun(const plan::TargetSettings& target, const std::string& directory);

    /// Puts the manifest. With `is_new` it must not be there yet. Throws std::runtime_error with one sentence.
    void save(const Manifest& manifest, bool is_new);
    /// Empty when there is none. Throws std::runtime_error when there is one that cannot be read.
    std::optional<Manifest> load();
    /// Removes the objects that the manifest names, aborts multipart uploads, and removes the manifest last.
    /// `is_dry_run` only counts. Objects that the run cannot have made stay, and are reported.
    Removal remove(const Manifest& manifest, bool is_dry_run);
    /// Removes the manifest of a run whose objects stay.
    void remove_manifest();

 private:
    std::string manifest_key() const { return prefix_ + manifest_name; }

    std::string directory_;
    objects::StoreSettings settings_;
    objects::StoreClient client_;
    std::string prefix_;  ///< of all keys of the run; ends with '/'
};

}  // namespace sonde::files
