// A case's C++ implementation as a function of its active inputs, and the interface of a library's header.
//
// A library's header defines
//
//     template <class F> struct Library {
//         explicit Library(const F& f);      or (const F& f, int variant) if there are several ways to call it
//         double value(const double* x);                            // by default f on doubles
//         double gradient(const double* x, double w, double* g);    // g = w ∇f(x); returns f(x)
//         double jvp(const double* x, const double* v);             // returns ∇f(x) · v
//         void hvp(const double* x, const double* v, double* h);    // h = H(x) v
//         void hessian(const double* x, double* H);                 // H(x), row by row
//     };
//
// and omits the operators that the library lacks. It uses these parts of `f`:
//
//     f.size()                    the number of active entries
//     f(x)                        the function at an array of any number type
//     f.constants_changed(kept)   whether a recording with the constants `kept` is out of date
//     f.template at<T>(inputs)    the function with inputs that the library creates (see `Numbers`)
#pragma once

#include <array>
#include <cstring>

#include "inputs.hpp"

struct NoGradient {};
NoGradient gradient(...);  // chosen if there is no hand-written gradient

namespace adbench {

// mask: a bit for each active input. own: a bit for each input that the hand-written `gradient` covers.
template <unsigned mask, unsigned own, class... Kinds>
class Function {
    using Inputs = std::index_sequence_for<Kinds...>;
    template <std::size_t input>
    using Kind = std::tuple_element_t<input, std::tuple<Kinds...>>;

public:
    explicit Function(const std::vector<Leaf>& leaves) : leaves_(leaves) {
        std::size_t input = 0, leaf = 0;
        const auto count = [&](std::size_t parts) {
            const bool on = mask >> input & 1;
            first_leaf_[input] = leaf;
            offset_[input++] = on ? size_ : constants_;
            for (std::size_t end = leaf + parts; leaf != end; ++leaf) {
                if (!leaves[leaf].is_real) continue;
                (on ? active_ : constant_).push_back(leaf);
                (on ? size_ : constants_) += leaves[leaf].size;
            }
        };
        (count(leaves_of<Kinds>), ...);
    }

    std::size_t size() const { return size_; }
    const std::vector<std::size_t>& active() const { return active_; }

    template <class T>
    T operator()(const T* x) const {
        return at<T>(Numbers<T>{x});
    }
    template <class T, class Made>
    T at(Made&& inputs) const {
        return with(inputs, [](const auto&... given) -> T { return ::f<T>(given...); }, Inputs{});
    }

    // The result of any type, for libraries whose implementations return expressions.
    template <class T, class Made>
    auto expression(Made inputs) const {
        return with(inputs, [](const auto&... given) { return ::f<T>(given...); }, Inputs{});
    }

    // The hand-written gradient: returns the value, writes active inputs to `g` and others to `aside`.
    double by_hand(double* g, std::vector<double>& aside) const {
        aside.resize(constants_);
        return hand(g, aside.data(), Inputs{});
    }
    // Whether it exists and covers all active inputs.
    static constexpr bool has_gradient_by_hand() {
        return !std::is_same_v<decltype(hand_type(Inputs{})), NoGradient> && (mask & ~own) == 0;
    }

    // Whether a constant has changed since the last call; ints and texts never change.
    bool constants_changed(std::vector<double>& kept) const {
        bool changed = kept.size() != constants_;
        kept.resize(constants_);
        double* before = kept.data();
        for (const std::size_t i : constant_) {
            const std::size_t bytes = leaves_[i].size * sizeof(double);
            if (bytes == 0) continue;
            if (std::memcmp(before, leaves_[i].data, bytes) != 0) {
                std::memcpy(before, leaves_[i].data, bytes);
                changed = true;
            }
            before += leaves_[i].size;
        }
        return changed;
    }

private:
    static constexpr bool is_active(std::size_t input) { return mask >> input & 1; }

    // then(inputs...), with inputs created by `inputs`.
    template <class Made, class Then, std::size_t... input>
    decltype(auto) with(Made& inputs, Then&& then, std::index_sequence<input...>) const {
        const Leaf* leaf = leaves_.data();
        std::size_t offset = 0;  // the braces below evaluate left to right
        const std::tuple<Given<input, Made>...> given{
            Reader<is_active(input), Made>{inputs, leaf, offset}(Kind<input>{})...};
        return std::apply(then, given);
    }
    template <std::size_t input, class Made>
    using Given = decltype(std::declval<Reader<is_active(input), Made>&>()(Kind<input>{}));

    // The place for the derivative of an input, or Nothing.
    template <std::size_t input>
    decltype(auto) written(double* g, double* aside) const {
        if constexpr (own >> input & 1) {
            return Writer{(is_active(input) ? g : aside) + offset_[input], &leaves_[first_leaf_[input]]}(Kind<input>{});
        } else {
            return Nothing{};
        }
    }
    template <std::size_t input>
    using Written = decltype(std::declval<const Function&>().template written<input>(nullptr, nullptr));
    template <std::size_t... input>
    static auto hand_type(std::index_sequence<input...>)
        -> decltype(::gradient(std::declval<const Given<input, InPlace>&>()..., std::declval<Written<input>>()...));
    template <std::size_t... input>
    double hand(double* g, double* aside, std::index_sequence<input...> each) const {
        InPlace inputs;
        const auto call = [&](const auto&... given) { return ::gradient(given..., written<input>(g, aside)...); };
        return with(inputs, call, each);
    }

    const std::vector<Leaf>& leaves_;
    std::array<std::size_t, sizeof...(Kinds)> first_leaf_{}, offset_{};  // of each input; among active or constant
    std::vector<std::size_t> active_, constant_;                         // leaves
    std::size_t size_ = 0, constants_ = 0;                               // numbers
};

}  // namespace adbench
