#include "adbench.hpp"

template <class T, class X, class E, class S>
T f(const adbench::Matrix<X>& x, const E& epsilon, const S& sigma) {
    const std::size_t n = x.rows();
    const S square = sigma * sigma;
    T total = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const X a = x(i, 0) - x(j, 0), b = x(i, 1) - x(j, 1), c = x(i, 2) - x(j, 2);
            const T ratio = square / (a * a + b * b + c * c);
            const T sixth = ratio * ratio * ratio;
            total += sixth * sixth - sixth;
        }
    }
    return 4.0 * epsilon * total;
}

inline double gradient(const adbench::Matrix<double>& x, double epsilon, double sigma, adbench::Result<2> by_x,
                       double& by_epsilon, double& by_sigma) {
    const std::size_t n = x.rows();
    const double square = sigma * sigma;
    double total = 0.0, virial = 0.0;
    std::fill(by_x.begin(), by_x.end(), 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        double p = 0.0, q = 0.0, r = 0.0;
        for (std::size_t j = 0; j < i; ++j) {
            const double a = x(i, 0) - x(j, 0), b = x(i, 1) - x(j, 1), c = x(i, 2) - x(j, 2);
            const double inverse = 1.0 / (a * a + b * b + c * c), ratio = square * inverse;
            const double sixth = ratio * ratio * ratio, strength = sixth - 2.0 * sixth * sixth;
            total += sixth * sixth - sixth;
            virial -= strength;
            const double slope = 24.0 * epsilon * strength * inverse;
            p += slope * a;
            q += slope * b;
            r += slope * c;
            by_x(j, 0) -= slope * a;
            by_x(j, 1) -= slope * b;
            by_x(j, 2) -= slope * c;
        }
        by_x(i, 0) += p;
        by_x(i, 1) += q;
        by_x(i, 2) += r;
    }
    by_epsilon = 4.0 * total;
    by_sigma = 24.0 * epsilon / sigma * virial;
    return 4.0 * epsilon * total;
}
