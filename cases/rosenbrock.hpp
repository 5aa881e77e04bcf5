#include "adbench.hpp"

template <class T, class X>
T f(const adbench::Vector<X>& x) {
    T total = 0.0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const X gap = x[i + 1] - x[i] * x[i], rest = 1.0 - x[i];
        total += 100.0 * gap * gap + rest * rest;
    }
    return total;
}

inline double gradient(const adbench::Vector<double>& x, adbench::Result<1> by_x) {
    double total = 0.0, gap = 0.0;
    const std::size_t last = x.size() - 1;
    for (std::size_t i = 0; i < last; ++i) {
        const double rest = 1.0 - x[i], from_before = 200.0 * gap;
        gap = x[i + 1] - x[i] * x[i];
        total += 100.0 * gap * gap + rest * rest;
        by_x[i] = from_before - 400.0 * x[i] * gap - 2.0 * rest;
    }
    by_x[last] = 200.0 * gap;
    return total;
}
