#include "adbench.hpp"

template <class T, class X>
T f(const adbench::Vector<X>& x) {
    using std::pow;
    T power = 10.0;
    for (const X& exponent : x) power = pow(power, exponent);
    return power;
}

// ∂f/∂x_i = f log(10) Π_j x_j / x_i, with the quotient as the product of the numbers before and after.
inline double gradient(const adbench::Vector<double>& x, adbench::Result<1> by_x) {
    double before = 1.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        by_x[i] = before;
        before *= x[i];
    }
    const double power = std::pow(10.0, before);
    double after = power * std::log(10.0);
    for (std::size_t i = x.size(); i-- > 0;) {
        by_x[i] *= after;
        after *= x[i];
    }
    return power;
}
