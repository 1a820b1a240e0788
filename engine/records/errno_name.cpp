// SPDX-License-Identifier: Apache-2.0
#include "records/errno_name.hpp"

#include <cerrno>
#include <map>

namespace sonde::records {

std::string errno_name(int code) {
    static const std::map<int, const char*> names{{EPERM, "EPERM"},
                                                  {ENOENT, "ENOENT"},
                                                  {EINTR, "EINTR"},
                                                  {EIO, "EIO"},
                                                  {ENXIO, "ENXIO"},
                                                  {EBADF, "EBADF"},
                                                  {EAGAIN, "EAGAIN"},
                                                  {ENOMEM, "ENOMEM"},
                                                  {EACCES, "EACCES"},
                                                  {EBUSY, "EBUSY"},
                                                  {EEXIST, "EEXIST"},
                                                  {ENODEV, "ENODEV"},
                                                  {ENOTDIR, "ENOTDIR"},
                                                  {EISDIR, "EISDIR"},
                                                  {EINVAL, "EINVAL"},
                                                  {ENFILE, "ENFILE"},
                                                  {EMFILE, "EMFILE"},
                                                  {EFBIG, "EFBIG"},
                                                  {ENOSPC, "ENOSPC"},
                                                  {EROFS, "EROFS"},
                                                  {EDQUOT, "EDQUOT"},
                                                  {ESTALE, "ESTALE"},
                                                  {ETIMEDOUT, "ETIMEDOUT"},
                                                  {EOPNOTSUPP, "EOPNOTSUPP"},
                                                  {ENODATA, "ENODATA"},
                                                  {ESHUTDOWN, "ESHUTDOWN"},
                                                  {EREMOTEIO, "EREMOTEIO"},
                                                  {ENOTCONN, "ENOTCONN"},
                                                  {ENAMETOOLONG, "ENAMETOOLONG"},
                                                  {ENOTEMPTY, "ENOTEMPTY"},
                                                  {ELOOP, "ELOOP"},
                                                  {EMLINK, "EMLINK"},
                                                  {EXDEV, "EXDEV"}};
    const auto entry = names.find(code);
    return entry == names.end() ? "E" + std::to_string(code) : entry->second;
}

}  // namespace sonde::records
