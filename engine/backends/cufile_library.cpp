// SPDX-License-Identifier: Apache-2.0
#include "backends/cufile_library.hpp"

#include "backends/runtime_library.hpp"

namespace sonde::backends {
namespace {

constexpr RuntimeLibrary cufile_library{.title = "cuFile",
                                        .variable = "SONDE_CUFILE_LIBRARY",
                                        .file = "libcufile.so.0",
                                        .remedy = "install NVIDIA's libcufile, use backend posix, which copies",
                                        .version = "cuFile 1.1 or later"};

CuFileFunctions bind_cufile() {
    CuFileFunctions f;
    bind_library(cufile_library, {
                                     {"cuFileDriverOpen", &f.DriverOpen},
                                     {"cuFileHandleRegister", &f.HandleRegister},
                                     {"cuFileHandleDeregister", &f.HandleDeregister},
                                     {"cuFileBufRegister", &f.BufRegister},
                                     {"cuFileBufDeregister", &f.BufDeregister},
                                     {"cuFileRead", &f.Read},
                                     {"cuFileWrite", &f.Write},
                                 });
    return f;
}

}  // namespace

const CuFileFunctions& load_cufile() {
    static const CuFileFunctions cufile = bind_cufile();
    return cufile;
}

std::string describe_cufile_error(int error) {
    switch (error) {
        case 5001:
            return "the nvidia-fs driver is not loaded; cufile.json with allow_compat_mode does without";
        case 5007:
            return "GPUDirect Storage is not supported on this platform";
        case 5008:
            return "GPUDirect Storage is not supported on this file";
        case 5009:
            return "GPUDirect Storage is not supported on this GPU";
        case 5018:
            return "this kind of file is not supported";
        case 5019:
            return "these flags of open() are not supported";
        case 5020:
            return "the file is not open for direct I/O: set io.direct = true";
        case 5034:
            return "cufile.json disables GPUDirect Storage on this file";
        default:
            return "cuFile error " + std::to_string(error);
    }
}

}  // namespace sonde::backends
