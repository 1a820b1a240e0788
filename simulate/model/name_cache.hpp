// SPDX-License-Identifier: Apache-2.0
// The names whose attributes a client keeps, as Lustre's clients do under a lock for each. It forgets the least
// recently used one first.
#pragma once

#include "model/operation.hpp"

#include <cstdint>
#include <list>
#include <unordered_map>

namespace sonde::simulate {

class NameCache {
 public:
    explicit NameCache(std::uint64_t capacity = 0) : capacity_(capacity) {}

    /// Whether the client has the attributes of the file. Counts as use.
    bool contains(FileId file) {
        const auto entry = entries_.find(file);
        if (entry == entries_.end()) {
            return false;
        }
        use_order_.splice(use_order_.end(), use_order_, entry->second);
        return true;
    }
    void insert(FileId file) {
        if (capacity_ == 0 || contains(file)) {
            return;
        }
        if (entries_.size() == capacity_) {
            entries_.erase(use_order_.front());
            use_order_.pop_front();
        }
        entries_.emplace(file, use_order_.insert(use_order_.end(), file));
    }
    void erase(FileId file) {
        if (const auto entry = entries_.find(file); entry != entries_.end()) {
            use_order_.erase(entry->second);
            entries_.erase(entry);
        }
    }
    void clear() {
        entries_.clear();
        use_order_.clear();
    }

 private:
    std::uint64_t capacity_;
    std::list<FileId> use_order_;  ///< least recently used first
    std::unordered_map<FileId, std::list<FileId>::iterator> entries_;
};

}  // namespace sonde::simulate
