#include <bitset>

#include "adbench.hpp"

// The determinant of the rows from `row` on, without the columns whose bits are set.
template <class X>
X minor_of(const adbench::Matrix<X>& A, std::size_t row, unsigned without) {
    X total = 0.0;
    bool positive = true;
    for (std::size_t j = 0; j < A.cols(); ++j) {
        if (without >> j & 1) continue;
        if (row + 1 == A.rows()) return A(row, j);
        const X term = A(row, j) * minor_of(A, row + 1, without | 1u << j);
        if (positive) {
            total += term;
        } else {
            total -= term;
        }
        positive = !positive;
    }
    return total;
}

template <class T, class X>
T f(const adbench::Matrix<X>& A) {
    return minor_of(A, 0, 0u);
}

// The cofactors, from the minors of the last rows, each computed once: n 2ⁿ terms instead of more than n!.
inline double gradient(const adbench::Matrix<double>& A, adbench::Result<2> by_A) {
    const std::size_t n = A.rows();
    const unsigned all = (1u << n) - 1;
    std::vector<double> minors(all + 1, 0.0), by(all + 1, 0.0);  // of the columns whose bits are set; ∂f/∂ that minor
    const auto expanded = [&](unsigned columns, const auto& term) {
        const std::size_t row = n - std::bitset<32>(columns).count();
        double sign = 1.0;
        for (std::size_t j = 0; j < n; ++j) {
            if (!(columns >> j & 1)) continue;
            term(row, j, sign, columns ^ 1u << j);
            sign = -sign;
        }
    };
    minors[0] = by[all] = 1.0;
    for (unsigned columns = 1; columns <= all; ++columns) {
        expanded(columns, [&](std::size_t row, std::size_t j, double sign, unsigned rest) {
            minors[columns] += sign * A(row, j) * minors[rest];
        });
    }
    std::fill(by_A.begin(), by_A.end(), 0.0);
    for (unsigned columns = all; columns > 0; --columns) {
        expanded(columns, [&](std::size_t row, std::size_t j, double sign, unsigned rest) {
            by_A(row, j) += sign * by[columns] * minors[rest];
            by[rest] += sign * by[columns] * A(row, j);
        });
    }
    return minors[all];
}
