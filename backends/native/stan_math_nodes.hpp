// Stan Math with a vector or a matrix as one node instead of one per entry. The implementations are in the folders
// next to this file; each includes the functions that it calls.
#pragma once

#include <stan/math/rev/core.hpp>

#include <utility>
#include <vector>

#include "inputs.hpp"

// Maps constants to Eigen objects without a copy; for the value, all inputs.
struct Constants {
    using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

    template <std::size_t axes>
    static auto seen(const double* x, const adbench::Leaf& leaf) {
        static_assert(axes <= 2, "Stan Math has numbers, vectors and matrices");
        if constexpr (axes == 0) {
            return *x;
        } else if constexpr (axes == 1) {
            return Eigen::Map<const Eigen::VectorXd>(x, leaf.shape[0]);
        } else {
            return Eigen::Map<const Rows>(x, leaf.shape[0], leaf.shape[1]);
        }
    }
    template <std::size_t axes>
    auto constant(adbench::Real<axes>, const adbench::Leaf& leaf) const {
        return seen<axes>(static_cast<const double*>(leaf.data), leaf);
    }
    template <std::size_t axes>
    auto active(adbench::Real<axes> real, std::size_t, const adbench::Leaf& leaf) const {
        return constant(real, leaf);
    }
};

struct Nodes : Constants {
    template <class Value>
    using Made = std::vector<std::pair<double*, stan::math::var_value<Value>>>;

    const double* x;
    double* g;  // output for the adjoints
    Made<double> numbers;
    Made<Eigen::VectorXd> vectors;
    Made<Eigen::MatrixXd> matrices;

    Nodes(const double* at, double* out) : x(at), g(out) {}

    template <std::size_t axes>
    auto active(adbench::Real<axes>, std::size_t offset, const adbench::Leaf& leaf) {
        auto& made = std::get<axes>(std::tie(numbers, vectors, matrices));
        return made.emplace_back(g + offset, seen<axes>(x + offset, leaf)).second;
    }

    void write_adjoints() const {
        for (const auto& [out, number] : numbers) *out = number.adj();
        for (const auto& [out, vector] : vectors) Eigen::Map<Eigen::VectorXd>(out, vector.size()) = vector.adj();
        for (const auto& [out, matrix] : matrices) Eigen::Map<Rows>(out, matrix.rows(), matrix.cols()) = matrix.adj();
    }
};

template <class F>
struct Library {
    const F& f;

    explicit Library(const F& function) : f(function) {}

    double value(const double*) { return f.template at<double>(Constants{}); }

    double gradient(const double* at, double w, double* g) {
        const stan::math::nested_rev_autodiff scope;
        Nodes nodes(at, g);
        const stan::math::var y = f.template at<stan::math::var>(nodes);
        y.adj() = w;
        stan::math::grad();
        nodes.write_adjoints();
        return y.val();
    }
};
