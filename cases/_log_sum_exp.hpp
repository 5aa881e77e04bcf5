#pragma once

#include "adbench.hpp"

// log Σ exp x_i over a row of n numbers, shifted by the maximum against overflow.
template <class X>
X log_sum_exp_of(const X* x, std::size_t n) {
    using std::exp, std::log;
    std::size_t largest = 0;
    for (std::size_t i = 1; i < n; ++i) {
        if (x[largest] < x[i]) largest = i;
    }
    X sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += exp(x[i] - x[largest]);
    return x[largest] + log(sum);
}

inline double gradient(const adbench::Vector<double>& x, adbench::Result<1> by_x) {
    const double largest = *std::max_element(x.begin(), x.end());
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        by_x[i] = std::exp(x[i] - largest);
        sum += by_x[i];
    }
    for (double& share : by_x) share /= sum;
    return largest + std::log(sum);
}
