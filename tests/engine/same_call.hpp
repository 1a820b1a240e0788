// SPDX-License-Identifier: Apache-2.0
// Whether our declaration of a function agrees with the header of its library: parameters and result are passed
// alike, although a handle of the header may be a pointer to another type and an enumeration an int.
#pragma once

#include <type_traits>

template <class Ours, class Theirs>
constexpr bool is_passed_alike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> ==
                                          std::is_pointer_v<Theirs>&& std::is_floating_point_v<Ours> ==
                                          std::is_floating_point_v<Theirs>;
template <>
constexpr bool is_passed_alike<void, void> = true;

template <class Ours, class Theirs>
struct Comparison;
template <class OurResult, class... Ours, class TheirResult, class... Theirs>
struct Comparison<OurResult (*)(Ours...), TheirResult (*)(Theirs...)> {
    static constexpr bool is_same = [] {
        if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
            return (is_passed_alike<Ours, Theirs> && ... && is_passed_alike<OurResult, TheirResult>);
        }
        return false;
    }();
};
