#pragma once

#include "adbench.hpp"

// Hand-written gradient of the normal log density, for every choice of active inputs: derivatives that are not needed
// are Nothing and cost nothing.
template <class Y, class M, class S>
double gradient(const adbench::Vector<double>& y, double mu, double sigma, Y&& by_y, M&& by_mu, S&& by_sigma) {
    using adbench::wanted;
    double sum = 0.0, squares = 0.0;
    const double inverse = 1.0 / sigma, n = static_cast<double>(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
        const double z = (y[i] - mu) * inverse;
        sum += z;
        squares += z * z;
        if constexpr (wanted<Y>) by_y[i] = -z * inverse;
    }
    if constexpr (wanted<M>) by_mu = sum * inverse;
    if constexpr (wanted<S>) by_sigma = (squares - n) * inverse;
    return -0.5 * squares - n * (std::log(sigma) + 0.5 * std::log(2.0 * adbench::pi));
}
