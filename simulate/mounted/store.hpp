// SPDX-License-Identifier: Apache-2.0
// The bytes of a mounted machine: a directory of an ordinary file system with the same names. Data is written there
// before a call is answered, so that no end of this program loses data. The machine identifies a file by its inode; the
// file's layout is stored in an extended attribute.
#pragma once

#include "mounted/layout_formats.hpp"
#include "mounted/real_time_machine.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <sys/stat.h>

namespace sonde::simulate {

struct ControlFile;

/// A file, directory or link of the store, or a control file. The kernel identifies it by its address.
struct Inode {
    int fd = -1;  ///< O_PATH; -1: a control file
    dev_t device = 0;
    ino_t number = 0;
    mode_t mode = 0;
    std::uint64_t lookup_count = 0;  ///< of the kernel that are not forgotten
    const ControlFile* control = nullptr;
    // Protected by the store's mutex:
    bool has_file = false;  ///< `file` is set
    FileId file = 0;
    bool is_inherited_layout_loaded = false;          ///< a directory: `inherited_layout` is set
    std::optional<RequestedLayout> inherited_layout;  ///< layout of new files in it

    bool is_directory() const { return S_ISDIR(mode); }
};

/// "/proc/self/fd/N": opens an O_PATH descriptor and accesses its attributes.
class DescriptorPath {
 public:
    explicit DescriptorPath(int fd);
    const char* c_str() const { return text_; }

 private:
    char text_[32];
};

/// The extended attribute that stores a layout.
constexpr const char* layout_attribute = "user.sonde.layout";
/// A file of this name marks the store's root. The mount shows its control files under this name.
constexpr const char* control_directory_name = ".sonde";

class Store {
 public:
    /// `root`: an open directory, which the store closes.
    Store(int root, RealTimeMachine& pace);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    Inode& root() { return root_; }
    /// The inode of a name with its attributes, counted as one lookup. Null: errno is set.
    Inode* look_up_inode(const Inode& parent, const char* name, struct stat& attributes);
    void release_lookups(Inode& inode, std::uint64_t lookups);

    /// The machine's file of an inode. It has the stored layout; a new file in `parent` inherits the layout of that. A
    /// layout that does not fit the machine is replaced by the default.
    FileId get_file(Inode& inode, const Inode* parent = nullptr);
    ModelLayout get_layout(Inode& inode);
    /// Sets the layout of an empty file. Returns 0 or an errno.
    int set_layout(Inode& inode, const RequestedLayout& requested);
    /// Sets the layout of new files in a directory; new directories inherit it. Returns 0 or an errno.
    int set_inherited_layout(Inode& directory, const RequestedLayout& requested);
    std::optional<RequestedLayout> get_inherited_layout(Inode& directory);

 private:
    struct Key {
        dev_t device;
        ino_t number;
        bool operator<(const Key& other) const {
            return device != other.device ? device < other.device : number < other.number;
        }
    };
    static void store_layout(const Inode& inode, const std::string& text);
    static std::optional<RequestedLayout> load_layout(const Inode& inode);
    static std::optional<RequestedLayout> load_inherited_layout(Inode& directory);

    RealTimeMachine& machine_;
    Inode root_;
    std::mutex mutex_;
    std::map<Key, std::unique_ptr<Inode>> inodes_;
};

}  // namespace sonde::simulate
