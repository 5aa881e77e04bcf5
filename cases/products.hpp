#include "adbench.hpp"

template <class T, class X>
T f(const adbench::Vector<X>& x) {
    T product = 1.0;
    for (const X& number : x) product *= number;
    return product;
}

// Multiplies the numbers before each number, then those after it, so zeros are correct too.
inline double gradient(const adbench::Vector<double>& x, adbench::Result<1> by_x) {
    double before = 1.0, after = 1.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        by_x[i] = before;
        before *= x[i];
    }
    for (std::size_t i = x.size(); i-- > 0;) {
        by_x[i] *= after;
        after *= x[i];
    }
    return before;
}
