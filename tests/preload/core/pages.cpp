// SPDX-License-Identifier: Apache-2.0
// The pages of a file: how they are found, which is taken again, whose memory is touched beforehand.
#include "cache/pages.hpp"

#include "held.hpp"

#include "model/state.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <string>

using namespace under_test;
using buffer::Busy;
using buffer::File;
using buffer::Page;

namespace {

/// A file that has only pages, clean ones; nobody else knows it.
struct Paged {
    std::unique_ptr<File> file = std::make_unique<File>();
    settings::Rule rule;
    explicit Paged(std::uint32_t limit, std::uint32_t page_size = 4096) {
        use(quiet);
        file->rule = &rule;
        file->held.page_size = page_size;
        file->held.limit = limit;
        file->size = 1LL << 40;
        REQUIRE(buffer::make_buckets(*file));
    }
    ~Paged() {
        buffer::drop_all(*file);
        CHECK(file->held.count == 0);
        CHECK(file->held.newest == nullptr);
        buffer::free_buckets(*file);
        CHECK(file->held.buckets == nullptr);
    }
    Page* page(std::int64_t index) {
        bool again = false;
        Page* made = buffer::new_page(*file, index, again, false);
        CHECK_FALSE(again);
        return made;
    }
    /// Their numbers from the one that was used last on.
    std::string by_use() const {
        std::string all;
        const Page* before = nullptr;
        for (const Page* one = file->held.newest; one != nullptr; one = one->older) {
            CHECK(one->newer == before);
            before = one;
            all += (all.empty() ? "" : " ") + std::to_string(one->index);
        }
        CHECK(file->held.oldest == before);
        return all;
    }
};

}  // namespace

TEST_CASE("there are as many buckets as pages may be, sixteen at least, and they are a power of two") {
    const auto buckets = [](std::uint32_t limit) {
        const Paged one(limit);
        return one.file->held.bucket_mask + 1;
    };
    CHECK(buckets(1) == 16);
    CHECK(buckets(16) == 16);
    CHECK(buckets(17) == 32);
    CHECK(buckets(32) == 32);
    CHECK(buckets(65'536) == 65'536);
    CHECK(buckets(1U << 31U) == 1U << 20U);
    const Paged few(16);
    CHECK(few.file->held.buckets == few.file->held.few_buckets);
    const Paged many(17);
    CHECK(many.file->held.buckets != many.file->held.few_buckets);
}

TEST_CASE("pages are found by their number, also those that share a bucket, in the order of their last use") {
    Paged one(5);
    for (const std::int64_t index : {3, 19, 35, 4}) {  // the first three in one bucket
        REQUIRE(one.page(index) != nullptr);
    }
    CHECK(one.by_use() == "4 35 19 3");
    for (const std::int64_t index : {3, 19, 35, 4}) {
        REQUIRE(buffer::find_page(*one.file, index) != nullptr);
        CHECK(buffer::find_page(*one.file, index)->index == index);
    }
    CHECK(buffer::find_page(*one.file, 51) == nullptr);
    CHECK(buffer::find_page(*one.file, 5) == nullptr);
    buffer::touch(*one.file, *buffer::find_page(*one.file, 19));
    CHECK(one.by_use() == "19 4 35 3");
    buffer::touch(*one.file, *buffer::find_page(*one.file, 19));
    buffer::touch(*one.file, *buffer::find_page(*one.file, 3));
    CHECK(one.by_use() == "3 19 4 35");
    buffer::drop_page(*one.file, *buffer::find_page(*one.file, 19));
    CHECK(one.by_use() == "3 4 35");
    CHECK(buffer::find_page(*one.file, 19) == nullptr);
    CHECK(buffer::find_page(*one.file, 35) != nullptr);
    CHECK(one.file->held.count == 3);
    File nothing;
    CHECK(buffer::find_page(nothing, 0) == nullptr);
}

TEST_CASE("a page more than there may be takes the place of the one that was not used for longest") {
    Paged one(2);
    Page* first = one.page(1);
    Page* second = one.page(2);
    REQUIRE(first != nullptr);
    first->valid.add(0, 10);
    first->full = true;
    CHECK(one.page(3) == first);
    CHECK(first->valid.empty());
    CHECK_FALSE(first->full);
    CHECK(first->index == 3);
    CHECK(one.by_use() == "3 2");
    second->busy = Busy::Loading;
    CHECK(one.page(4) == first);
    first->busy = Busy::Writing;
    CHECK(one.page(5) == nullptr);  // nothing that could go
    first->busy = second->busy = Busy::No;
    CHECK(one.file->held.count == 2);
    Paged none(0);
    bool again = true;
    CHECK(buffer::new_page(*none.file, 1, again) == nullptr);
    CHECK_FALSE(again);  // there never will be one
}

TEST_CASE("memory that all files have taken together is counted, and none is taken beyond the limit") {
    Paged one(8);
    buffer::State& state = buffer::state;
    const std::uint64_t before = state.memory_used.load();
    const std::uint64_t most = state.memory_most.load();
    state.memory_most = before + 2 * 4096;
    REQUIRE(one.page(1) != nullptr);
    REQUIRE(one.page(2) != nullptr);
    CHECK(state.memory_used.load() == before + 8192);
    const Page* third = one.page(3);
    REQUIRE(third != nullptr);
    CHECK(third == buffer::find_page(*one.file, 3));
    CHECK(one.file->held.count == 2);
    CHECK(state.memory_used.load() == before + 8192);
    buffer::drop_all(*one.file);
    CHECK(state.memory_used.load() == before);
    state.memory_most = before + 4095;
    CHECK(one.page(4) == nullptr);
    CHECK(state.memory_used.load() == before);
    state.memory_most = most;
}

TEST_CASE("a stream takes the page again that it has left behind, when there are two and nobody needs it") {
    Paged one(4);
    Page* first = one.page(10);
    REQUIRE(first != nullptr);
    CHECK(buffer::reuse_page_behind(*one.file, 11, false) == nullptr);  // the only one
    REQUIRE(one.page(20) != nullptr);
    CHECK(buffer::reuse_page_behind(*one.file, 12, false) == nullptr);
    CHECK(buffer::reuse_page_behind(*one.file, 11, true) == nullptr);
    first->valid.add(0, 10);
    CHECK(buffer::reuse_page_behind(*one.file, 11, false) == first);
    CHECK(first->index == 11);
    CHECK(first->valid.empty());
    CHECK(one.by_use() == "11 20");
    CHECK(buffer::find_page(*one.file, 10) == nullptr);
    CHECK(buffer::find_page(*one.file, 11) == first);
    CHECK(buffer::reuse_page_behind(*one.file, 10, true) == first);
    first->is_dirty = true;
    CHECK(buffer::reuse_page_behind(*one.file, 11, false) == nullptr);
    first->is_dirty = false;
    first->busy = Busy::Loading;
    CHECK(buffer::reuse_page_behind(*one.file, 11, false) == nullptr);
    first->busy = Busy::No;
    CHECK(one.file->held.count == 2);
}

TEST_CASE("memory is touched before 64 KiB and more are loaded into it, where a page is no larger than a mebibyte") {
    const Folder folder;
    const auto touched = [&](std::uint32_t page_size, std::uint32_t bytes) {
        Paged one(2, page_size);
        const int fd = open((folder.path + "/data").c_str(), O_CREAT | O_RDWR, 0644);
        one.file->ends.reader = fd;
        Page* page = one.page(0);
        REQUIRE(page != nullptr);
        CHECK_FALSE(page->touched);
        CHECK(buffer::load(*one.file, *page, 0, bytes, false) == 0);
        CHECK(page->valid.covers(0, bytes));
        CHECK(one.file->statistics.wait_ns == 0);
        close(fd);
        return page->touched;
    };
    CHECK_FALSE(touched(1U << 20U, 65'535));
    CHECK(touched(1U << 20U, 65'536));
    CHECK_FALSE(touched((1U << 20U) + 4096, 65'536));
}

TEST_CASE("memory that was given back is there for the next page of its size") {
    Paged one(3, 12'288);
    Page* page = one.page(1);
    REQUIRE(page != nullptr);
    char* const data = page->data;
    data[0] = 'a';
    buffer::drop_page(*one.file, *page);
    {
        Paged smaller(1, 8192);
        CHECK(smaller.page(1)->data != data);
    }
    page = one.page(2);
    CHECK(page->data == data);
    CHECK(data[0] == 'a');  // nobody clears it: what is valid is known by its ranges
    CHECK_FALSE(page->touched);
}
