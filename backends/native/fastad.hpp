// FastAD: an expression template of the whole function, built once and evaluated at every call. Rebuilt when a constant
// changes, because nodes store values computed from constants. The implementations in the folder `fastad` use FastAD's
// functions and return the expression. Matrices arrive transposed, because FastAD stores columns.
#pragma once

#include <fastad>

#include <memory>
#include <vector>

#include "inputs.hpp"

struct Views {
    double* x;
    double* g;
    const double* constants;  // in a row at a fixed address: nodes refer to them

    template <std::size_t axes>
    auto active(adbench::Real<axes>, std::size_t offset, const adbench::Leaf& leaf) const {
        static_assert(axes <= 2, "FastAD has numbers, vectors and matrices");
        if constexpr (axes == 0) {
            return ad::VarView<double, ad::scl>(x + offset, g + offset);
        } else if constexpr (axes == 1) {
            return ad::VarView<double, ad::vec>(x + offset, g + offset, leaf.size);
        } else {
            return ad::VarView<double, ad::mat>(x + offset, g + offset, leaf.shape[1], leaf.shape[0]);
        }
    }
    template <std::size_t axes>
    auto constant(adbench::Real<axes>, const adbench::Leaf& leaf) {
        const double* data = std::exchange(constants, constants + leaf.size);
        if constexpr (axes == 0) {
            return ad::constant(*data);
        } else if constexpr (axes == 1) {
            return ad::constant_view(data, leaf.size);
        } else {
            return ad::constant_view(data, leaf.shape[1], leaf.shape[0]);
        }
    }
};

template <class F>
struct Library {
    const F& f;
    std::vector<double> x, adjoints, constants;

    explicit Library(const F& function) : f(function), x(f.size()), adjoints(f.size()) {}

    double value(const double* at) {
        std::copy(at, at + f.size(), x.begin());
        return ad::evaluate(expression());
    }

    double gradient(const double* at, double w, double* g) {
        std::copy(at, at + f.size(), x.begin());
        std::fill(adjoints.begin(), adjoints.end(), 0.0);
        const double y = ad::autodiff(expression(), w);
        std::copy(adjoints.begin(), adjoints.end(), g);
        return y;
    }

private:
    using Bound = decltype(ad::bind(std::declval<const F&>().template expression<double>(std::declval<Views>())));

    Bound& expression() {
        if (f.constants_changed(constants) || !bound_) {
            bound_ = std::make_unique<Bound>(
                ad::bind(f.template expression<double>(Views{x.data(), adjoints.data(), constants.data()})));
        }
        return *bound_;
    }

    std::unique_ptr<Bound> bound_;
};
