// SPDX-License-Identifier: Apache-2.0
// The one list of treatments, and how they are judged. A new treatment is one file and one line in each of the two
// groups here.
#include "treatments/treatments.hpp"

#include "records/file_system.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

namespace sonde::treatments {

extern const Kind sync_treatment;
extern const Kind drop_page_cache_treatment;
extern const Kind fadvise_treatment;
extern const Kind remount_treatment;
extern const Kind memory_hog_treatment;
extern const Kind sleep_treatment;
extern const Kind command_treatment;
extern const Kind cancel_locks_treatment;

std::span<const Kind* const> list() {
    static const Kind* const all[] = {&sync_treatment,    &drop_page_cache_treatment, &fadvise_treatment,
                                      &remount_treatment, &memory_hog_treatment,      &sleep_treatment,
                                      &command_treatment, &cancel_locks_treatment};
    return all;
}

namespace {

using Outcome = TreatmentResult::Outcome;

std::string percent(double share) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", share * 100);
    return text;
}

/// What keeps pages in memory, in words.
std::string why_resident(const Residency& after, const std::string& directory) {
    const records::FileSystem system = records::describe_file_system(directory);
    if (system.memory_backed) {
        return system.type + " keeps its files in memory, so they cannot be dropped; choose a target on storage.";
    }
    if (after.dirty > 0) {
        return std::to_string(after.dirty) +
               " pages were not yet written back; somebody is still writing, or a `sync` treatment is needed before.";
    }
    return "pages that a process has mapped or locked stay; end what still uses the files, or raise max_resident.";
}

/// Measures around a cache treatment and judges it by its effect, not by its exit status.
TreatmentResult judged(const Kind& kind, const Subject& subject) {
    const Residency before = measure_residency(subject.files);
    TreatmentResult result = kind.apply(subject);
    result.before = before;
    result.after = measure_residency(subject.files);
    if (!result.after.known) {
        return result;
    }
    const double share = result.after.share();
    const double allowed = subject.asked.max_resident;
    if (share > allowed) {
        result.outcome = Outcome::failed;
        result.text += " " + percent(share) + " of the data is still in the page cache (allowed: " + percent(allowed) +
                       "): " + why_resident(result.after, subject.directory);
    } else {
        result.text += " Data in the page cache: " + percent(before.share()) + " before, " + percent(share) + " after.";
    }
    return result;
}

TreatmentResult apply_kind(const Subject& subject) {
    const auto all = list();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&subject](const Kind* kind) { return kind->rule.name == subject.asked.kind; });
    if (found == all.end()) {
        return said(Outcome::skipped, "This engine does not know the treatment.");
    }
    return (*found)->empties_caches ? judged(**found, subject) : (*found)->apply(subject);
}

}  // namespace

TreatmentResult apply(const plan::Treatment& treatment, const std::string& directory,
                      const std::vector<std::string>& files, const StopAsked& stop) {
    const auto begin = std::chrono::steady_clock::now();
    TreatmentResult result;
    try {
        result = apply_kind({treatment, directory, files, stop});
    } catch (const std::exception& failure) {  // no thread, no memory: a failed treatment, not a failed run
        result = said(Outcome::failed, std::string("The treatment could not be carried out: ") + failure.what() + ".");
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

}  // namespace sonde::treatments
