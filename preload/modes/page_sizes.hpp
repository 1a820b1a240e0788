// SPDX-License-Identifier: Apache-2.0
// Pages of files that are only read. Their size is what is asked for at once and what is waited for, so it need not be
// that of the buffers that the user has named: as much memory is used in smaller pages. As long as storage may be as
// fast as memory they are as small as gains most there, because memory that is new to the process costs more than
// a copy from the kernel's cache. Where storage is slow they are larger, and the next ones are read meanwhile.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// Before the first page of a file that cannot be written so far.
void divide_pages(File& file) noexcept;
/// After a call, or before the first one that may write: other pages, when it is time for them. With the lock of the
/// file, and no operation of this thread under way.
void fit_pages(File& file) noexcept;

}  // namespace sonde::buffer
