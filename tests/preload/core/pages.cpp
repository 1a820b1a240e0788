// SPDX-License-Identifier: Apache-2.0
// Tests how pages are found, which page is evicted, and whose memory is touched in advance.
#include "cache/pages.hpp"

#include "dirty_file.hpp"

#include "model/state.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <string>

using namespace under_test;
using buffer::File;
using buffer::Page;
using buffer::PageActivity;

namespace {

/// A file object with clean pages that is not registered.
struct Paged {
    std::unique_ptr<File> file = std::make_unique<File>();
    settings::Rule rule;
    explicit Paged(std::uint32_t limit, std::uint32_t page_size = 4096) {
        use(quiet);
        file->rule = &rule;
        file->pages.page_size = page_size;
        file->pages.max_pages = limit;
        file->size = 1LL << 40;
        REQUIRE(buffer::allocate_page_buckets(*file));
    }
    ~Paged() {
        buffer::drop_all_pages(*file);
        CHECK(file->pages.count == 0);
        CHECK(file->pages.newest == nullptr);
        buffer::free_page_buckets(*file);
        CHECK(file->pages.hash_buckets == nullptr);
    }
    Page* page(std::int64_t index) {
        bool again = false;
        Page* page = buffer::allocate_page(*file, index, again, false);
        CHECK_FALSE(again);
        return page;
    }
    /// Returns the page indices from the most recently used on.
    std::string by_use() const {
        std::string all;
        const Page* before = nullptr;
        for (const Page* page = file->pages.newest; page != nullptr; page = page->older) {
            CHECK(page->newer == before);
            before = page;
            all += (all.empty() ? "" : " ") + std::to_string(page->index);
        }
        CHECK(file->pages.oldest == before);
        return all;
    }
};

}  // namespace

TEST_CASE("bucket_count_is_a_power_of_two_from_sixteen") {
    const auto buckets = [](std::uint32_t limit) {
        const Paged paged(limit);
        return paged.file->pages.hash_bucket_mask + 1;
    };
    CHECK(buckets(1) == 16);
    CHECK(buckets(16) == 16);
    CHECK(buckets(17) == 32);
    CHECK(buckets(32) == 32);
    CHECK(buckets(65'536) == 65'536);
    CHECK(buckets(1U << 31U) == 1U << 20U);
    const Paged few(16);
    CHECK(few.file->pages.hash_buckets == few.file->pages.inline_hash_buckets);
    const Paged many(17);
    CHECK(many.file->pages.hash_buckets != many.file->pages.inline_hash_buckets);
}

TEST_CASE("pages_are_looked_up_by_index_and_ordered_by_use") {
    Paged paged(5);
    for (const std::int64_t index : {3, 19, 35, 4}) {  // the first three in one bucket
        REQUIRE(paged.page(index) != nullptr);
    }
    CHECK(paged.by_use() == "4 35 19 3");
    for (const std::int64_t index : {3, 19, 35, 4}) {
        REQUIRE(buffer::find_page(*paged.file, index) != nullptr);
        CHECK(buffer::find_page(*paged.file, index)->index == index);
    }
    CHECK(buffer::find_page(*paged.file, 51) == nullptr);
    CHECK(buffer::find_page(*paged.file, 5) == nullptr);
    buffer::mark_page_used(*paged.file, *buffer::find_page(*paged.file, 19));
    CHECK(paged.by_use() == "19 4 35 3");
    buffer::mark_page_used(*paged.file, *buffer::find_page(*paged.file, 19));
    buffer::mark_page_used(*paged.file, *buffer::find_page(*paged.file, 3));
    CHECK(paged.by_use() == "3 19 4 35");
    buffer::drop_page(*paged.file, *buffer::find_page(*paged.file, 19));
    CHECK(paged.by_use() == "3 4 35");
    CHECK(buffer::find_page(*paged.file, 19) == nullptr);
    CHECK(buffer::find_page(*paged.file, 35) != nullptr);
    CHECK(paged.file->pages.count == 3);
    File nothing;
    CHECK(buffer::find_page(nothing, 0) == nullptr);
}

TEST_CASE("page_beyond_limit_replaces_least_recently_used") {
    Paged paged(2);
    Page* first = paged.page(1);
    Page* second = paged.page(2);
    REQUIRE(first != nullptr);
    first->valid.add(0, 10);
    first->is_written_past = true;
    CHECK(paged.page(3) == first);
    CHECK(first->valid.empty());
    CHECK_FALSE(first->is_written_past);
    CHECK(first->index == 3);
    CHECK(paged.by_use() == "3 2");
    second->activity = PageActivity::Loading;
    CHECK(paged.page(4) == first);
    first->activity = PageActivity::Writing;
    CHECK(paged.page(5) == nullptr);  // nothing that could go
    first->activity = second->activity = PageActivity::No;
    CHECK(paged.file->pages.count == 2);
    Paged none(0);
    bool again = true;
    CHECK(buffer::allocate_page(*none.file, 1, again) == nullptr);
    CHECK_FALSE(again);  // there never will be one
}

TEST_CASE("memory_of_all_files_is_counted_and_limited") {
    Paged paged(8);
    buffer::BufferState& state = buffer::state;
    const std::uint64_t before = state.used_memory_bytes.load();
    const std::uint64_t most = state.max_memory_bytes.load();
    state.max_memory_bytes = before + 2 * 4096;
    REQUIRE(paged.page(1) != nullptr);
    REQUIRE(paged.page(2) != nullptr);
    CHECK(state.used_memory_bytes.load() == before + 8192);
    const Page* third = paged.page(3);
    REQUIRE(third != nullptr);
    CHECK(third == buffer::find_page(*paged.file, 3));
    CHECK(paged.file->pages.count == 2);
    CHECK(state.used_memory_bytes.load() == before + 8192);
    buffer::drop_all_pages(*paged.file);
    CHECK(state.used_memory_bytes.load() == before);
    state.max_memory_bytes = before + 4095;
    CHECK(paged.page(4) == nullptr);
    CHECK(state.used_memory_bytes.load() == before);
    state.max_memory_bytes = most;
}

TEST_CASE("stream_reuses_the_page_behind_it") {
    Paged paged(4);
    Page* first = paged.page(10);
    REQUIRE(first != nullptr);
    CHECK(buffer::reuse_page_behind_stream(*paged.file, 11, false) == nullptr);  // the only one
    REQUIRE(paged.page(20) != nullptr);
    CHECK(buffer::reuse_page_behind_stream(*paged.file, 12, false) == nullptr);
    CHECK(buffer::reuse_page_behind_stream(*paged.file, 11, true) == nullptr);
    first->valid.add(0, 10);
    CHECK(buffer::reuse_page_behind_stream(*paged.file, 11, false) == first);
    CHECK(first->index == 11);
    CHECK(first->valid.empty());
    CHECK(paged.by_use() == "11 20");
    CHECK(buffer::find_page(*paged.file, 10) == nullptr);
    CHECK(buffer::find_page(*paged.file, 11) == first);
    CHECK(buffer::reuse_page_behind_stream(*paged.file, 10, true) == first);
    first->is_dirty = true;
    CHECK(buffer::reuse_page_behind_stream(*paged.file, 11, false) == nullptr);
    first->is_dirty = false;
    first->activity = PageActivity::Loading;
    CHECK(buffer::reuse_page_behind_stream(*paged.file, 11, false) == nullptr);
    first->activity = PageActivity::No;
    CHECK(paged.file->pages.count == 2);
}

TEST_CASE("memory_is_touched_before_loads_from_64_kib") {
    const Folder folder;
    const auto touched = [&](std::uint32_t page_size, std::uint32_t bytes) {
        Paged paged(2, page_size);
        const int fd = open((folder.path + "/data").c_str(), O_CREAT | O_RDWR, 0644);
        paged.file->descriptors.read_fd = fd;
        Page* page = paged.page(0);
        REQUIRE(page != nullptr);
        CHECK_FALSE(page->has_memory);
        CHECK(buffer::load_page_range(*paged.file, *page, 0, bytes, false) == 0);
        CHECK(page->valid.covers(0, bytes));
        CHECK(paged.file->statistics.wait_ns == 0);
        close(fd);
        return page->has_memory;
    };
    CHECK_FALSE(touched(1U << 20U, 65'535));
    CHECK(touched(1U << 20U, 65'536));
    CHECK_FALSE(touched((1U << 20U) + 4096, 65'536));
}

TEST_CASE("returned_memory_serves_next_page_of_its_size") {
    Paged paged(3, 12'288);
    Page* page = paged.page(1);
    REQUIRE(page != nullptr);
    char* const data = page->data;
    data[0] = 'a';
    buffer::drop_page(*paged.file, *page);
    {
        Paged smaller(1, 8192);
        CHECK(smaller.page(1)->data != data);
    }
    page = paged.page(2);
    CHECK(page->data == data);
    CHECK(data[0] == 'a');  // nobody clears it: what is valid is known by its ranges
    CHECK_FALSE(page->has_memory);
}

TEST_CASE("large_pages_do_not_begin_with_a_page_of_memory") {
    const auto offset_of = [](Paged& paged) {
        const Page* page = paged.page(0);
        REQUIRE(page != nullptr);
        page->data[paged.file->pages.page_size - 1] = 'z';
        return reinterpret_cast<std::uintptr_t>(page->data) % 4096;
    };
    Paged large(2, 65'536);
    CHECK(offset_of(large) == 64);
    Paged small(2, 4096);
    CHECK(offset_of(small) == 0);
    Paged direct(2, 65'536);
    direct.rule.direct = true;
    buffer::drop_all_pages(*large.file);  // its memory is not for O_DIRECT
    CHECK(offset_of(direct) == 0);
    buffer::drop_all_pages(*direct.file);
    CHECK(offset_of(large) == 64);
}
