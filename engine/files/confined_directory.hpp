// SPDX-License-Identifier: Apache-2.0
// Files in directories that other users may write. A directory is opened once and held: whatever happens to its path
// afterwards, every call acts on that directory. No call follows a symbolic link below it, leaves it through "..", or
// enters another mounted file system.
#pragma once

#include "files/descriptor.hpp"

#include <sys/stat.h>
#include <sys/types.h>
#include <memory>
#include <string>

namespace sonde::files {

/// The names in a directory, without "." and "..", one after the other.
class Listing {
 public:
    /// Reads `descriptor` from its start; the descriptor stays open and must outlive the listing.
    explicit Listing(int descriptor);
    /// 0, or the errno of the open.
    int error() const { return error_; }
    /// The next name, valid until the next call; null at the end.
    const char* next();
    /// Whether the last name may be a directory, by the type in the listing; false for a symbolic link.
    bool may_be_directory() const { return may_be_directory_; }

 private:
    std::unique_ptr<DIR, CloseDirectory> entries_;
    int error_ = 0;
    bool may_be_directory_ = false;
};

/// An open directory. Names given to its methods are single components: one with '/', "", "." or ".." gives -EINVAL.
/// Methods that return int give 0 or -errno unless they say more.
class ConfinedDirectory {
 public:
    /// Returned by remove_directory(child) when another file or directory has taken the child's name.
    static constexpr int replaced = 1;

    /// No directory; error() is ENOENT.
    ConfinedDirectory() = default;
    /// Opens a directory that the user named. Follows symbolic links in `path`, this once.
    static ConfinedDirectory open(const std::string& path);
    /// The same, but the last component must not be a symbolic link (ELOOP or ENOTDIR): for a directory that Sonde made
    /// below a directory that the user named.
    static ConfinedDirectory open_made(const std::string& path);

    /// Opens a directory below this one; `relative` may have several components. Uses openat2(2) with RESOLVE_BENEATH,
    /// RESOLVE_NO_SYMLINKS and RESOLVE_NO_XDEV. Where the kernel or a container filter lacks that call, opens step by
    /// step with O_NOFOLLOW. ELOOP or ENOTDIR: a component is a link or a file; EXDEV: another file system is mounted
    /// there; EINVAL: a component is empty, "." or "..".
    ConfinedDirectory open_subdirectory(const std::string& relative) const;
    /// Opens a direct subdirectory, also where another file system is mounted on it. ELOOP or ENOTDIR: a link or a
    /// file.
    ConfinedDirectory open_entry(const std::string& name) const;
    /// The same directory once more.
    ConfinedDirectory duplicate() const;
    /// The directory that holds this one now.
    ConfinedDirectory open_parent() const;

    /// Whether it is open. A directory that the caller may enter but not read is open; only its list() fails.
    explicit operator bool() const { return *descriptor_ >= 0; }
    /// errno of the open that failed; 0 when the directory is open.
    int error() const { return error_; }
    int descriptor() const { return *descriptor_; }
    /// For messages only: the path by which the directory was opened.
    const std::string& path() const { return path_; }
    /// The directory's name in its parent. Empty when it cannot be determined (/proc is missing).
    std::string name() const;
    /// Current path of the directory, as the kernel reports it; empty when /proc is missing.
    std::string current_path() const;

    /// A descriptor, or -errno. Never follows a link; `flags` as for open(2), `mode` for O_CREAT.
    Descriptor open_file(const std::string& name, int flags, mode_t mode = 0) const;
    /// Creates a file that must not exist yet (O_EXCL) and opens it for writing. A descriptor, or -errno.
    Descriptor create_file(const std::string& name, mode_t mode, int more_flags = 0) const;
    int make_directory(const std::string& name, mode_t mode) const;
    int unlink(const std::string& name) const;
    int rename(const std::string& from, const std::string& to) const;
    /// Removes an empty directory, whichever has that name.
    int remove_directory(const std::string& name) const;
    /// Removes an empty directory that is held open, if its name still stands for it (device and inode are compared);
    /// otherwise removes nothing and returns `replaced`.
    int remove_directory(const ConfinedDirectory& child) const;
    /// Status of an entry; of a link, the link itself.
    int status(const std::string& name, struct stat& into) const;
    /// Status of this directory.
    int status(struct stat& into) const;
    Listing list() const { return Listing(*descriptor_); }
    /// Makes the names in it durable. File systems without such a call are not an error.
    void synchronize() const;

    /// Whether the directory, still open, has been removed from its parent.
    bool is_removed() const;
    /// Whether the caller owns this directory.
    bool is_owned_by_caller() const;
    /// Whether the caller owns it, or the user that owner_of_new_files() names: for a directory that the caller has
    /// made.
    bool is_made_by_caller() const;
    /// The user who owns what the caller creates in here: the caller, except where a server maps users (root_squash).
    /// Creates a file without a name, or with a random one that it removes.
    uid_t owner_of_new_files() const;
    /// Why other users could replace files in here: a clause that follows the directory's name, for instance "belongs
    /// to user 1001 (eve)". Empty when they could not: the caller or root owns the directory, and others cannot write
    /// to it unless it is sticky.
    std::string explain_unsafe_directory() const;

    /// Resolves step by step in this process from now on, or again as the kernel allows. For tests.
    static void force_stepwise_resolution(bool force);

 private:
    ConfinedDirectory(int descriptor_or_error, std::string path);
    /// 0, -EINVAL when `name` is not a single component, or the error of the open.
    int check_name(const std::string& name) const;
    ConfinedDirectory open_step_by_step(const std::string& relative, const std::string& path) const;

    Descriptor descriptor_{-1};
    int error_ = 2;  ///< ENOENT
    std::string path_;
    std::string name_;  ///< empty: asked from the kernel
};

/// "user 1001 (eve)", or "user 1001" where the name is unknown.
std::string user_text(uid_t user);

}  // namespace sonde::files
