// SPDX-License-Identifier: Apache-2.0
// Where the bytes are: a directory of an ordinary file system with the same names. What is written lies there before
// the call is answered, so that the end of this program, however sudden, loses nothing. The machine knows each file by
// its inode, and its layout is kept beside it in an attribute.
#pragma once

#include "mounted/layout_forms.hpp"
#include "mounted/pace.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <sys/stat.h>

namespace sonde::simulate {

struct ControlFile;

/// What the kernel knows by a number: a file, a directory or a link of the store, or a control file.
struct Inode {
    int fd = -1;  ///< O_PATH; -1: a control file
    dev_t device = 0;
    ino_t number = 0;
    mode_t mode = 0;
    std::uint64_t lookups = 0;  ///< that the kernel has not forgotten
    const ControlFile* control = nullptr;
    // Under the store's lock:
    bool known = false;  ///< to the machine, as `file`
    FileId file = 0;
    bool asked = false;                     ///< a directory: `inherited` has been looked up
    std::optional<WantedLayout> inherited;  ///< by new files in it

    bool directory() const { return S_ISDIR(mode); }
};

/// "/proc/self/fd/N", through which an O_PATH descriptor is opened and its attributes are reached.
class DescriptorPath {
 public:
    explicit DescriptorPath(int fd);
    const char* c_str() const { return text_; }

 private:
    char text_[32];
};

/// The attribute in which a layout is kept.
constexpr const char* kept_layout = "user.sonde.layout";
/// In the store's root: says what the directory is. The mount shows its control files under this name instead.
constexpr const char* own_name = ".sonde";

class Store {
 public:
    /// `root`: an open directory; it is closed with the store.
    Store(int root, Pace& pace);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    Inode& root() { return root_; }
    /// The inode of that name, with one lookup more. Null: errno says why; `attributes` are its own.
    Inode* look_up(const Inode& parent, const char* name, struct stat& attributes);
    void forget(Inode& inode, std::uint64_t lookups);

    /// The machine's file. Its layout is that which was kept; a file that `parent` has just got takes the one that it
    /// passes on. A layout that the machine does not have any more is dealt anew.
    FileId file(Inode& inode, const Inode* parent = nullptr);
    Layout layout(Inode& inode);
    /// Of an empty file. 0 or an errno.
    int set_layout(Inode& inode, const WantedLayout& wanted);
    /// What new files in a directory get; and new directories, which have the same.
    int set_inherited(Inode& directory, const WantedLayout& wanted);
    std::optional<WantedLayout> inherited(Inode& directory);

 private:
    struct Key {
        dev_t device;
        ino_t number;
        bool operator<(const Key& other) const {
            return device != other.device ? device < other.device : number < other.number;
        }
    };
    static void keep(const Inode& inode, const std::string& text);
    static std::optional<WantedLayout> kept(const Inode& inode);
    static std::optional<WantedLayout> passed_on(Inode& directory);

    Pace& pace_;
    Inode root_;
    std::mutex mutex_;
    std::map<Key, std::unique_ptr<Inode>> inodes_;
};

}  // namespace sonde::simulate
