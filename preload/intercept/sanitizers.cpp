// SPDX-License-Identifier: Apache-2.0
// AddressSanitizer ends a program in which another library comes before its own, unless an option says otherwise. Its
// functions are then the next in line after ours, which is all that it needs.

extern "C" [[gnu::weak, gnu::visibility("default")]] const char* __asan_default_options() {
    return "verify_asan_link_order=0";
}
