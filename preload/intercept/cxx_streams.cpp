// SPDX-License-Identifier: Apache-2.0
#include "intercept/cxx_streams.hpp"

#include <elf.h>
#include <link.h>
#include <cstdint>
#include <cstring>

namespace sonde::intercept {

namespace {

struct ObjectSearch {
    std::uintptr_t address;
    bool is_found;
};

bool contains_address(const dl_phdr_info& object, std::uintptr_t address) noexcept {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = object.dlpi_phdr[i];
        const std::uintptr_t begin = object.dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_LOAD && address >= begin && address - begin < part.p_memsz) {
            return true;
        }
    }
    return false;
}

/// Its names of functions, with their zeros around them.
bool has_dynamic_string(const dl_phdr_info& object, const char* function, std::size_t bytes) noexcept {
    const ElfW(Dyn)* entry = nullptr;
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        if (object.dlpi_phdr[i].p_type == PT_DYNAMIC) {
            entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
        }
    }
    std::uintptr_t text = 0;
    std::size_t length = 0;
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        text = entry->d_tag == DT_STRTAB ? entry->d_un.d_ptr : text;
        length = entry->d_tag == DT_STRSZ ? entry->d_un.d_val : length;
    }
    if (text == 0) {
        return false;
    }
    text += text < object.dlpi_addr ? object.dlpi_addr : 0;  // the loader has added it already, or not
    return memmem(reinterpret_cast<const void*>(text), length, function, bytes) != nullptr;
}

int search_object(dl_phdr_info* object, std::size_t, void* data) noexcept {
    auto* search = static_cast<ObjectSearch*>(data);
    if (!contains_address(*object, search->address)) {
        return 0;
    }
    const char* slash = std::strrchr(object->dlpi_name, '/');
    const char* name = slash != nullptr ? slash + 1 : object->dlpi_name;
    // There is a way to build libstdc++ so that it uses C's streams; then it has no need of these two.
    search->is_found = std::strncmp(name, "libstdc++.so", 12) == 0 && has_dynamic_string(*object, "\0writev", 8) &&
                       has_dynamic_string(*object, "\0lseek64", 9);
    return 1;
}

}  // namespace

bool is_cxx_stream(const void* caller) noexcept {
    ObjectSearch search{reinterpret_cast<std::uintptr_t>(caller), false};
    dl_iterate_phdr(search_object, &search);
    return search.is_found;
}

}  // namespace sonde::intercept
