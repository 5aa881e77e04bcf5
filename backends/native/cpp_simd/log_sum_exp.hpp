// log Σ exp x with vectorised exponentials.
#include <algorithm>

#define gradient plain_gradient
#include "../../../cases/log_sum_exp.hpp"
#undef gradient

inline double gradient(const adbench::Vector<double>& x, adbench::Result<1> by_x) {
    const std::size_t n = x.size();
    const double* at = x.data();
    double* out = by_x.data();
    double largest = at[0], sum = 0.0;
    for (std::size_t i = 1; i < n; ++i) largest = std::max(largest, at[i]);
    for (std::size_t i = 0; i < n; ++i) sum += out[i] = std::exp(at[i] - largest);
    const double inverse = 1.0 / sum;
    for (std::size_t i = 0; i < n; ++i) out[i] *= inverse;
    return largest + std::log(sum);
}
