// The twin of a case as a function of its active inputs, and what a library makes of it.
//
// A library's header defines
//
//     template <class F> struct Library {
//         explicit Library(const F& f);      or (const F& f, int variant): ways of calling the library
//         double value(const double* x);                            // else the twin on doubles
//         double gradient(const double* x, double w, double* g);    // g = w ∇f(x); returns f(x)
//         double jvp(const double* x, const double* v);             // returns ∇f(x) · v
//         void hvp(const double* x, const double* v, double* h);    // h = H(x) v
//         void hessian(const double* x, double* H);                 // H(x), row by row
//     };
//
// and leaves out what the library has not. Of `f` it uses
//
//     f.size()                    the number of active entries
//     f(x)                        the twin at an array of any number type
//     f.constants_changed(kept)   whether what was recorded with these constants no longer holds
//     f.template at<T>(inputs)    the twin with inputs made by the library itself (see `Numbers`)
#pragma once

#include <array>
#include <cstring>

#include "inputs.hpp"

struct NoGradient {};
NoGradient gradient(...);  // found where the twin has no gradient by hand

namespace adbench {

// mask: a bit for each active input. own: one for each that the case is differentiated in, which `gradient` is for.
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

    // What the text makes of such inputs, whatever it is: for libraries whose texts return expressions.
    template <class T, class Made>
    auto expression(Made inputs) const {
        return with(inputs, [](const auto&... given) { return ::f<T>(given...); }, Inputs{});
    }

    // The twin's gradient by hand: the value; the results in `g`, in `aside` those for inputs that are not active.
    double by_hand(double* g, std::vector<double>& aside) const {
        aside.resize(constants_);
        return hand(g, aside.data(), Inputs{});
    }
    // Whether there is one, for all that is active.
    static constexpr bool has_gradient_by_hand() {
        return !std::is_same_v<decltype(hand_type(Inputs{})), NoGradient> && (mask & ~own) == 0;
    }

    // Whether a constant is another than at the last such question; ints and texts stay what they are.
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

    // then(inputs...), with the inputs made by `inputs`.
    template <class Made, class Then, std::size_t... input>
    decltype(auto) with(Made& inputs, Then&& then, std::index_sequence<input...>) const {
        const Leaf* leaf = leaves_.data();
        std::size_t offset = 0;  // braces below: from left to right
        const std::tuple<Given<input, Made>...> given{
            Reader<is_active(input), Made>{inputs, leaf, offset}(Kind<input>{})...};
        return std::apply(then, given);
    }
    template <std::size_t input, class Made>
    using Given = decltype(std::declval<Reader<is_active(input), Made>&>()(Kind<input>{}));

    // Where the derivative in an input goes, or Nothing.
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
