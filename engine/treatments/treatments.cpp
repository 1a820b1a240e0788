// SPDX-License-Identifier: Apache-2.0
// The list of treatments, and the check of their effect. A new treatment is one file and one line in each of the two
// groups here.
#include "treatments/treatments.hpp"

#include "records/file_system.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

namespace sonde::treatments {

extern const TreatmentKind sync_treatment;
extern const TreatmentKind drop_page_cache_treatment;
extern const TreatmentKind fadvise_treatment;
extern const TreatmentKind remount_treatment;
extern const TreatmentKind memory_hog_treatment;
extern const TreatmentKind sleep_treatment;
extern const TreatmentKind command_treatment;
extern const TreatmentKind cancel_locks_treatment;

std::span<const TreatmentKind* const> list_treatments() {
    static const TreatmentKind* const all[] = {&sync_treatment,    &drop_page_cache_treatment, &fadvise_treatment,
                                               &remount_treatment, &memory_hog_treatment,      &sleep_treatment,
                                               &command_treatment, &cancel_locks_treatment};
    return all;
}

namespace {

using Status = TreatmentResult::Status;

std::string format_percent(double share) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", share * 100);
    return text;
}

/// Why pages are still in memory, as a sentence.
std::string explain_residency(const Residency& after, const std::string& directory) {
    const records::FileSystem system = records::describe_file_system(directory);
    if (system.memory_backed) {
        return system.type + " keeps its files in memory, so they cannot be dropped; choose a target on storage.";
    }
    if (after.dirty > 0) {
        return std::to_string(after.dirty) +
               " pages were not yet written back; somebody is still writing, or a `sync` treatment is needed before.";
    }
    return "pages that a process has mapped or locked stay; end what still uses the files, or raise max_residency.";
}

/// Applies a cache treatment; its outcome depends on the residency afterwards, not on its exit status.
TreatmentResult apply_and_check_residency(const TreatmentKind& kind, const TreatmentRequest& context) {
    const Residency before = measure_residency(context.files, max_examined_files, context.range);
    TreatmentResult result = kind.apply(context);
    result.before = before;
    result.after = measure_residency(context.files, max_examined_files, context.range);
    if (!result.after.is_known) {
        return result;
    }
    const double share = result.after.share();
    const double allowed = context.treatment.max_residency;
    if (share > allowed) {
        result.outcome = Status::failed;
        result.text += " " + format_percent(share) +
                       " of the data is still in the page cache (allowed: " + format_percent(allowed) +
                       "): " + explain_residency(result.after, context.directory);
    } else {
        result.text += " Data in the page cache: " + format_percent(before.share()) + " before, " +
                       format_percent(share) + " after.";
    }
    return result;
}

TreatmentResult apply_kind(const TreatmentRequest& context) {
    const auto all = list_treatments();
    const auto kind = std::find_if(all.begin(), all.end(), [&context](const TreatmentKind* candidate) {
        return candidate->capability.name == context.treatment.kind;
    });
    if (kind == all.end()) {
        return make_result(Status::skipped, "This engine does not know the treatment.");
    }
    return (*kind)->empties_caches ? apply_and_check_residency(**kind, context) : (*kind)->apply(context);
}

}  // namespace

TreatmentResult apply_treatment(const plan::Treatment& treatment, const std::string& directory,
                                const std::vector<std::string>& files, const StopPredicate& stop,
                                const DeviceRange& range) {
    const auto begin = std::chrono::steady_clock::now();
    TreatmentResult result;
    try {
        result = apply_kind({treatment, directory, files, stop, range});
    } catch (const std::exception& failure) {  // for example no thread or memory: the treatment fails, not the run
        result =
            make_result(Status::failed, std::string("The treatment could not be carried out: ") + failure.what() + ".");
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

}  // namespace sonde::treatments
