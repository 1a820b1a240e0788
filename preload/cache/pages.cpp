// SPDX-License-Identifier: Apache-2.0
// Finds, allocates, releases and fills the pages of a file.

#include "cache/pages.hpp"

#include <algorithm>
#include <iterator>
#include "cache/page_transfer.hpp"
#include "cache/profitability.hpp"
#include "cache/writeback.hpp"
#include "model/state.hpp"
#include "model/unlocked_scope.hpp"

namespace sonde::buffer {

namespace {

/// Where the data of a page begins in a page of memory. Writes to large folios (ext4, XFS) from the beginning of a page
/// of memory take ten times as long on AMD processors (`rep movsb`): 256 MB in 0.4 s, from byte 64 on in 0.04 s.
constexpr std::size_t usual_offset = 64, memory_page = 4096;
constexpr std::size_t min_offset_bytes = 64U << 10U;  ///< of a page whose memory may grow by one page of memory

/// O_DIRECT needs memory that begins with a page.
std::size_t choose_data_offset(const File& file) noexcept {
    return file.rule->direct || file.pages.page_size < min_offset_bytes ? 0 : usual_offset;
}

std::size_t offset_in_memory_page(const char* data) noexcept {
    return reinterpret_cast<std::uintptr_t>(data) % memory_page;
}

/// Released page buffers are kept for the next file, because new memory costs a page fault every 4 KiB.
struct Spare {
    char* data;
    std::size_t bytes;
};
constexpr std::size_t max_spare_bytes = 32U << 20U;
constinit system::Lock spare_lock;
Spare spares[64];
std::size_t spare_count = 0;
std::size_t spare_bytes = 0;

char* take_spare_buffer(std::size_t bytes, std::size_t offset) noexcept {
    {
        system::LockGuard lock_guard(spare_lock);
        for (std::size_t i = spare_count; i > 0; --i) {
            if (spares[i - 1].bytes == bytes && offset_in_memory_page(spares[i - 1].data) == offset) {
                char* data = spares[i - 1].data;
                spares[i - 1] = spares[--spare_count];
                spare_bytes -= bytes;
                return data;
            }
        }
    }
    auto* memory = static_cast<char*>(system::map_bytes(bytes + offset));
    if (memory != nullptr && bytes >= 2U << 20U) {
        raw::call(SYS_madvise, raw::pointer_to_number(memory), static_cast<long>(bytes + offset), MADV_HUGEPAGE);
    }
    return memory != nullptr ? memory + offset : nullptr;
}

void return_spare_buffer(char* data, std::size_t bytes) noexcept {
    {
        system::LockGuard lock_guard(spare_lock);
        if (spare_count < std::size(spares) && spare_bytes + bytes <= max_spare_bytes) {
            spares[spare_count++] = {data, bytes};
            spare_bytes += bytes;
            return;
        }
    }
    const std::size_t offset = offset_in_memory_page(data);
    system::unmap_bytes(data - offset, bytes + offset);
}

Page** find_page_bucket(File& file, std::int64_t index) noexcept {
    return &file.pages.hash_buckets[static_cast<std::uint64_t>(index) & file.pages.hash_bucket_mask];
}

void unlink_from_use_list(File& file, Page& page) noexcept {
    (page.newer != nullptr ? page.newer->older : file.pages.newest) = page.older;
    (page.older != nullptr ? page.older->newer : file.pages.oldest) = page.newer;
    page.newer = page.older = nullptr;
}

void link_as_newest(File& file, Page& page) noexcept {
    page.older = file.pages.newest;
    (file.pages.newest != nullptr ? file.pages.newest->newer : file.pages.oldest) = &page;
    file.pages.newest = &page;
}

void remove_from_bucket(File& file, Page& page) noexcept {
    Page** link = find_page_bucket(file, page.index);
    while (*link != &page) {
        link = &(*link)->in_bucket;
    }
    *link = page.in_bucket;
}

void insert_page(File& file, Page& page, std::int64_t index) noexcept {
    page.index = index;
    page.in_bucket = *find_page_bucket(file, index);
    *find_page_bucket(file, index) = &page;
    link_as_newest(file, page);
}

bool allocate_page_memory(File& file) noexcept {
    const std::uint64_t bytes = file.pages.page_size;
    if (state.used_memory_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes >
        state.max_memory_bytes.load(std::memory_order_relaxed)) {
        state.used_memory_bytes.fetch_sub(bytes, std::memory_order_relaxed);
        return false;
    }
    return true;
}

Page* make_unused_page(File& file) noexcept {
    if (file.pages.count >= file.pages.max_pages || !allocate_page_memory(file)) {
        return nullptr;
    }
    Page* page = state.page_slab.allocate();
    char* data = page != nullptr ? take_spare_buffer(file.pages.page_size, choose_data_offset(file)) : nullptr;
    if (data == nullptr) {
        if (page != nullptr) {
            state.page_slab.deallocate(page);
        }
        state.used_memory_bytes.fetch_sub(file.pages.page_size, std::memory_order_relaxed);
        return nullptr;
    }
    page->data = data;
    page->has_memory = false;
    ++file.pages.count;
    return page;
}

/// Returns the least recently used clean page; nullptr if all pages are dirty or busy.
Page* choose_page_to_evict(File& file) noexcept {
    for (Page* page = file.pages.oldest; page != nullptr; page = page->newer) {
        if (!page->is_dirty && page->activity == PageActivity::No) {
            return page;
        }
    }
    // A page that is only planned for read-ahead is evicted for a page that is needed now.
    for (Page* page = file.pages.oldest; page != nullptr && file.pages.queued_for_read_ahead > 0; page = page->newer) {
        if (page->activity == PageActivity::Queued) {
            return page;
        }
    }
    return nullptr;
}

void remove_page(File& file, Page& page) noexcept {
    if (page.is_read_ahead) {
        page.is_read_ahead = false;
        count_unused_read_ahead(file);
    }
    if (page.activity == PageActivity::Queued) {
        --file.pages.queued_for_read_ahead;
    }
    page.activity = PageActivity::No;
    page.is_written_past = false;
    page.valid.clear();
    page.dirty.clear();
}

}  // namespace

void release_pages_of_parent() noexcept {
    spare_lock.reset();
}

bool allocate_page_buckets(File& file) noexcept {
    constexpr std::uint32_t few = std::size(CachedPages{}.inline_hash_buckets);
    std::uint32_t buckets = few;  // no less: as many pages may be chosen later (choosing.cpp)
    while (buckets < file.pages.max_pages && buckets < (1U << 20U)) {
        buckets *= 2;
    }
    file.pages.hash_buckets = buckets == few ? file.pages.inline_hash_buckets
                                             // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
                                             : static_cast<Page**>(system::map_bytes(buckets * sizeof(Page*)));
    file.pages.hash_bucket_mask = buckets - 1;
    return file.pages.hash_buckets != nullptr;
}

void free_page_buckets(File& file) noexcept {
    if (file.pages.hash_buckets != nullptr && file.pages.hash_buckets != file.pages.inline_hash_buckets) {
        // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
        system::unmap_bytes(static_cast<void*>(file.pages.hash_buckets),
                            (file.pages.hash_bucket_mask + 1ULL) * sizeof(Page*));
    }
    file.pages.hash_buckets = nullptr;
}

Page* find_page(File& file, std::int64_t index) noexcept {
    if (file.pages.newest != nullptr && file.pages.newest->index == index) {
        return file.pages.newest;
    }
    Page* page = file.pages.hash_buckets != nullptr ? *find_page_bucket(file, index) : nullptr;
    while (page != nullptr && page->index != index) {
        page = page->in_bucket;
    }
    return page;
}

void mark_page_used(File& file, Page& page) noexcept {
    if (file.pages.newest != &page) {
        unlink_from_use_list(file, page);
        link_as_newest(file, page);
    }
}

Page* reuse_page_behind_stream(File& file, std::int64_t index, bool backward) noexcept {
    constexpr std::uint32_t some = 2;
    Page* page = file.pages.count >= some ? find_page(file, index + (backward ? 1 : -1)) : nullptr;
    if (page == nullptr || page->is_dirty || page->activity != PageActivity::No) {
        return nullptr;
    }
    remove_page(file, *page);
    remove_from_bucket(file, *page);
    unlink_from_use_list(file, *page);
    insert_page(file, *page, index);
    return page;
}

Page* allocate_page(File& file, std::int64_t index, bool& again, bool may_wait) noexcept {
    again = false;
    Page* page = make_unused_page(file);
    if (page == nullptr) {
        page = choose_page_to_evict(file);
        if (page != nullptr) {
            remove_page(file, *page);
            remove_from_bucket(file, *page);
            unlink_from_use_list(file, *page);
        }
    }
    if (page != nullptr) {
        insert_page(file, *page, index);
        return page;
    }
    if (!may_wait || file.pages.count == 0) {
        return nullptr;
    }
    again = true;
    if (file.dirty.first != nullptr && !file.active_calls.is_write_in_flight) {
        if (write_oldest(file, true) != 0) {
            again = false;  // it stays dirty; whoever asked must do without a page
        }
    } else {
        wait_for_change(file);
    }
    return nullptr;
}

void drop_page(File& file, Page& page) noexcept {
    if (page.is_dirty) {
        mark_page_clean(file, page);
    }
    remove_page(file, page);
    remove_from_bucket(file, page);
    unlink_from_use_list(file, page);
    return_spare_buffer(page.data, file.pages.page_size);
    page.data = nullptr;
    state.used_memory_bytes.fetch_sub(file.pages.page_size, std::memory_order_relaxed);
    --file.pages.count;
    state.page_slab.deallocate(&page);
}

void drop_all_pages(File& file) noexcept {
    while (file.pages.oldest != nullptr) {
        drop_page(file, *file.pages.oldest);
    }
}

namespace {

/// Memory that nobody has touched costs about what it costs to fill it from the kernel's cache. That must not be taken
/// for the time of storage, and all at once is cheaper (Linux 5.14; before, each page is made when it is met).
void touch_page_memory(const File& file, Page& page, std::uint32_t bytes) noexcept {
    constexpr std::uint32_t min_bytes = 64U << 10U, max_bytes = 1U << 20U;
    constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, which older headers do not have
    if (page.has_memory || bytes < min_bytes || file.pages.page_size > max_bytes) {
        return;
    }
    page.has_memory = true;
    const std::int64_t bytes_to_end = file.size - page.index * file.pages.page_size;
    const auto used = static_cast<std::size_t>(std::clamp<std::int64_t>(bytes_to_end, 0, file.pages.page_size));
    const std::size_t offset = offset_in_memory_page(page.data);
    const std::size_t touched = (offset + used + memory_page - 1) / memory_page * memory_page;
    raw::call(SYS_madvise, raw::pointer_to_number(page.data - offset), static_cast<long>(touched), populate_write);
}

}  // namespace

int load_page_range(File& file, Page& page, std::uint32_t begin, std::uint32_t end, bool program_waits) noexcept {
    PageTransfer job;
    if (!job.begin_load(file, page, begin, end)) {
        return 0;
    }
    touch_page_memory(file, page, end - begin);
    UnlockedScope unlocked(file, program_waits ? &file.statistics.wait_ns : nullptr);
    job.execute_all();
    unlocked.end();
    return job.finish(unlocked.elapsed_ns);
}

}  // namespace sonde::buffer
