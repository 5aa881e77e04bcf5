#include "adbench.hpp"

template <class T, class X>
T f(const adbench::Vector<X>& x) {
    T total = 0.0, sum = 0.0;
    for (const X& number : x) {
        X s = 1.0;
        for (int times = 0; times < 100; ++times) s = s + (number * number + 1.0) / s;
        sum += s;
        total += 4.0 * sum * sum;
    }
    return total;
}

inline double gradient(const adbench::Vector<double>& x, adbench::Result<1> by_x) {
    std::vector<double> sums(x.size());
    double total = 0.0, sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        double s = 1.0, slope = 0.0;
        const double gain = x[i] * x[i] + 1.0;
        for (int times = 0; times < 100; ++times) {
            const double inverse = 1.0 / s;
            slope += (2.0 * x[i] - slope * gain * inverse) * inverse;
            s += gain * inverse;
        }
        by_x[i] = 8.0 * slope;
        sums[i] = sum += s;
        total += 4.0 * sum * sum;
    }
    double from_here_on = 0.0;
    for (std::size_t i = x.size(); i-- > 0;) by_x[i] *= from_here_on += sums[i];
    return total;
}
