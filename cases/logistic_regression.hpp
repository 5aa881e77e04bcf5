#include "adbench.hpp"

template <class T, class B, class X, class Y>
T f(const adbench::Vector<B>& beta, const adbench::Matrix<X>& x, const adbench::Vector<Y>& y) {
    using std::exp, std::log;
    T total = 0.0;
    for (std::size_t i = 0; i < x.rows(); ++i) {
        adbench::Of<T, B, X> z = 0.0;
        for (std::size_t j = 0; j < x.cols(); ++j) z += x(i, j) * beta[j];
        // log(1 + exp z) by the smaller exponential. The sum is at least 1, so the logarithm loses no digits of the
        // result.
        const adbench::Of<T, B, X> larger = z < 0.0 ? adbench::Of<T, B, X>(0.0) : z;
        const adbench::Of<T, B, X> sum = exp(z - larger) + exp(-larger);
        total += y[i] * z - larger - log(sum);
    }
    B squares = 0.0;
    for (const B& coefficient : beta) squares += coefficient * coefficient;
    return total - 0.5 * squares;
}

inline double gradient(const adbench::Vector<double>& beta, const adbench::Matrix<double>& x,
                       const adbench::Vector<double>& y, adbench::Result<1> by_beta, adbench::Nothing,
                       adbench::Nothing) {
    double total = 0.0;
    for (std::size_t j = 0; j < beta.size(); ++j) {
        by_beta[j] = -beta[j];
        total -= 0.5 * beta[j] * beta[j];
    }
    for (std::size_t i = 0; i < x.rows(); ++i) {
        const double* row = x.data() + i * x.cols();
        double z = 0.0;
        for (std::size_t j = 0; j < beta.size(); ++j) z += row[j] * beta[j];
        const double tail = std::exp(-std::fabs(z)), inverse = 1.0 / (1.0 + tail);
        total += y[i] * z - std::max(z, 0.0) - std::log1p(tail);
        const double left = y[i] - (z < 0.0 ? tail * inverse : inverse);
        for (std::size_t j = 0; j < beta.size(); ++j) by_beta[j] += left * row[j];
    }
    return total;
}
