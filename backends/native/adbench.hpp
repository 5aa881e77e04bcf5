// Types for the C++ implementations of cases.
//
// cases/<name>.hpp implements cases/<name>.py for every C++ library:
//
//     #include "adbench.hpp"
//
//     template <class T, class Y, class M, class S>
//     T f(const adbench::Vector<Y>& y, const M& mu, const S& sigma) {
//         using std::log;          // argument-dependent lookup finds the library's `log`
//         ...
//     }
//
// It takes the case's inputs in order. T is the library's number. Active inputs arrive as T, constants as double, so
// constants cost the same as in plain C++.
//
//     a number             const X&             X is T or double
//     a float64 array      Array<X, axes>       Vector<X> and Matrix<X> for one axis and two
//     a Python int         std::int64_t
//     a bool               bool
//     a text               std::string_view
//     a dict, list, tuple  std::tuple of these  (a dict's in the order of its sorted keys)
//
// Store results of operators in variables of type T, never `auto`: a library may return an expression that refers to
// temporaries. Initialise every T, as in `T sum = 0.0`: in some libraries `T sum{}` has no value.
//
// The result has type T, as has everything computed from a T. `Of<T, Y, S>` is the type of values computed from a Y and
// an S: double if both are constants. Every library has these functions: acos, asin, atan, atan2 (of two T), cos, cosh,
// exp, fabs, log, pow, sin, sinh, sqrt, tan, tanh.
//
// A hand-written gradient, if known, follows the function:
//
//     inline double gradient(const adbench::Vector<double>& y, double mu, double sigma,
//                            adbench::Nothing, double& by_mu, double& by_sigma)
//
// It takes the inputs as doubles, then for each input the place for its derivative (double&, Result<axes>), or Nothing
// if the input is not active. It returns the value.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace adbench {

// A view of numbers in C order. a[i] is an entry, or the i-th part if there are several axes; a(i, j) is an entry.
template <class X, std::size_t axes, class Pointer = const X*>
class Array {
    static_assert(axes > 0, "a number is no array");

public:
    Array(Pointer data, const std::int64_t* shape) : data_(data), shape_(shape) {}

    std::size_t extent(std::size_t axis) const { return static_cast<std::size_t>(shape_[axis]); }
    std::size_t rows() const { return extent(0); }
    std::size_t cols() const { return extent(1); }
    std::size_t size() const { return entries_from(0); }
    Pointer data() const { return data_; }
    Pointer begin() const { return data_; }
    Pointer end() const { return data_ + size(); }

    decltype(auto) operator[](std::size_t i) const {
        if constexpr (axes == 1) {
            return (data_[i]);
        } else {
            return Array<X, axes - 1, Pointer>(data_ + i * entries_from(1), shape_ + 1);
        }
    }

    template <class... Index>
    decltype(auto) operator()(Index... index) const {
        static_assert(sizeof...(Index) == axes, "one index for each axis");
        std::size_t place = 0, axis = 0;
        ((place = place * extent(axis++) + static_cast<std::size_t>(index)), ...);
        return (data_[place]);
    }

private:
    std::size_t entries_from(std::size_t axis) const {
        std::size_t count = 1;
        for (; axis < axes; ++axis) count *= extent(axis);
        return count;
    }

    Pointer data_;
    const std::int64_t* shape_;
};

template <class X>
using Vector = Array<X, 1>;
template <class X>
using Matrix = Array<X, 2>;

// The output array of a hand-written gradient.
template <std::size_t axes>
using Result = Array<double, axes, double*>;

struct Nothing {};
template <class R>
constexpr bool wanted = !std::is_same_v<std::decay_t<R>, Nothing>;

inline constexpr double pi = 3.14159265358979323846;

// The type of values computed from these types: T if one of them is T, else double.
template <class T, class... X>
using Of = std::conditional_t<(std::is_same_v<T, X> || ...), T, double>;

// Thrown by an implementation or a library that lacks the requested operation.
struct Unsupported : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace adbench
