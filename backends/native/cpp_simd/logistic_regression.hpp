// Logistic regression in blocks of rows, with vectorised exponentials and logarithms.
#include <array>

#define gradient plain_gradient
#include "../../../cases/logistic_regression.hpp"
#undef gradient

inline double gradient(const adbench::Vector<double>& beta, const adbench::Matrix<double>& x,
                       const adbench::Vector<double>& y, adbench::Result<1> by_beta, adbench::Nothing,
                       adbench::Nothing) {
    constexpr std::size_t block = 256;
    const std::size_t columns = beta.size();
    double* by = by_beta.data();
    double sum = 0.0;
    for (std::size_t j = 0; j < columns; ++j) {
        by[j] = -beta[j];
        sum -= 0.5 * beta[j] * beta[j];
    }
    std::array<double, block> z, left;
    for (std::size_t start = 0; start < x.rows(); start += block) {
        const std::size_t count = std::min(block, x.rows() - start);
        const double *rows = x.data() + start * columns, *labels = y.data() + start;
        for (std::size_t i = 0; i < count; ++i) {
            double dot = 0.0;
            for (std::size_t j = 0; j < columns; ++j) dot += rows[i * columns + j] * beta.data()[j];
            z[i] = dot;
        }
        for (std::size_t i = 0; i < count; ++i) {
            const double tail = std::exp(-std::fabs(z[i])), inverse = 1.0 / (1.0 + tail);
            sum += labels[i] * z[i] - std::max(z[i], 0.0) - std::log(1.0 + tail);
            left[i] = labels[i] - (z[i] < 0.0 ? tail * inverse : inverse);
        }
        for (std::size_t i = 0; i < count; ++i) {
            for (std::size_t j = 0; j < columns; ++j) by[j] += left[i] * rows[i * columns + j];
        }
    }
    return sum;
}
