// The inputs of a C++ implementation: their kinds and the addresses of their numbers.
#pragma once

#include <tuple>
#include <utility>

#include "adbench.hpp"

namespace adbench {

// The kind of an input, from its Python value: floats in `axes` axes, an int, a bool, a text, or a nest of these.
template <std::size_t axes>
struct Real {};
struct Whole {};
struct Truth {};
struct Text {};
template <class... Parts>
struct Nest {};

template <class Kind>
constexpr std::size_t leaves_of = 1;
template <class... Parts>
constexpr std::size_t leaves_of<Nest<Parts...>> = (leaves_of<Parts> + ... + 0);

struct Leaf {
    const void* data;  // doubles, one std::int64_t, or the characters of a text
    std::vector<std::int64_t> shape;
    bool is_real;
    std::size_t size;
};

template <std::size_t axes, class X>
decltype(auto) view(X* data, const Leaf& leaf) {
    if constexpr (axes == 0) {
        return (*data);
    } else {
        return Array<std::remove_const_t<X>, axes, X*>(data, leaf.shape.data());
    }
}

// Creates inputs: active ones from an array of T, constants at their addresses.
template <class T>
struct Numbers {
    const T* x;

    template <std::size_t axes>
    decltype(auto) active(Real<axes>, std::size_t offset, const Leaf& leaf) const {
        return view<axes>(x + offset, leaf);
    }
    template <std::size_t axes>
    decltype(auto) constant(Real<axes>, const Leaf& leaf) const {
        return view<axes>(static_cast<const double*>(leaf.data), leaf);
    }
};

// Creates all inputs as doubles at their addresses.
struct InPlace : Numbers<double> {
    template <std::size_t axes>
    decltype(auto) active(Real<axes> real, std::size_t, const Leaf& leaf) const {
        return constant(real, leaf);
    }
};

template <bool on, class Inputs>
struct Reader {
    Inputs& inputs;
    const Leaf*& leaf;
    std::size_t& offset;

    template <std::size_t axes>
    decltype(auto) operator()(Real<axes> real) {
        const Leaf& here = *leaf++;
        if constexpr (on) {
            return inputs.active(real, std::exchange(offset, offset + here.size), here);
        } else {
            return inputs.constant(real, here);
        }
    }
    std::int64_t operator()(Whole) { return *static_cast<const std::int64_t*>((leaf++)->data); }
    bool operator()(Truth) { return *static_cast<const std::int64_t*>((leaf++)->data) != 0; }
    std::string_view operator()(Text) { return static_cast<const char*>((leaf++)->data); }
    template <class... Parts>
    auto operator()(Nest<Parts...>) {
        return std::tuple<decltype((*this)(Parts{}))...>{(*this)(Parts{})...};  // braces evaluate left to right
    }
};

// Creates the outputs of a hand-written gradient: the same kinds as the inputs, writable.
struct Writer {
    double* at;
    const Leaf* leaf;

    template <std::size_t axes>
    decltype(auto) operator()(Real<axes>) {
        const Leaf& here = *leaf++;
        return view<axes>(std::exchange(at, at + here.size), here);
    }
    template <class... Parts>
    auto operator()(Nest<Parts...>) {
        return std::tuple<decltype((*this)(Parts{}))...>{(*this)(Parts{})...};
    }
};

}  // namespace adbench
