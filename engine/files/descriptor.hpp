// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>
#include <unistd.h>

namespace sonde::files {

/// A descriptor that is closed when it is no longer needed; -1 = none.
class Descriptor {
 public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) {
            ::close(number_);
        }
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int operator*() const { return number_; }

 private:
    int number_;
};

/// For a std::unique_ptr that holds an open directory.
struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace sonde::files
