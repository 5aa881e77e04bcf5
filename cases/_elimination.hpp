#pragma once

#include "adbench.hpp"

// Gaussian elimination in place on the rows of a square matrix: U on and above the diagonal, the factors of L below it.
// Returns the order of the rows: row k of L and U is at order[k].
template <class X>
std::vector<std::size_t> eliminated(std::vector<X>& rows, std::size_t n, bool exchange) {
    using std::fabs;
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    for (std::size_t k = 0; k < n; ++k) {
        if (exchange) {
            std::size_t best = k;
            X largest = fabs(rows[order[k] * n + k]);
            for (std::size_t i = k + 1; i < n; ++i) {
                const X size = fabs(rows[order[i] * n + k]);
                if (largest < size) {
                    best = i;
                    largest = size;
                }
            }
            std::swap(order[k], order[best]);
        }
        const X* pivot = &rows[order[k] * n];
        for (std::size_t i = k + 1; i < n; ++i) {
            X* row = &rows[order[i] * n];
            row[k] /= pivot[k];
            for (std::size_t j = k + 1; j < n; ++j) row[j] -= row[k] * pivot[j];
        }
    }
    return order;
}

template <class T, class X>
T log_abs_det(const adbench::Matrix<X>& A, bool exchange) {
    using std::fabs, std::log;
    const std::size_t n = A.rows();
    std::vector<X> rows(A.begin(), A.end());
    const std::vector<std::size_t> order = eliminated(rows, n, exchange);
    T total = 0.0;
    for (std::size_t k = 0; k < n; ++k) total += log(fabs(rows[order[k] * n + k]));
    return total;
}

// log |det A|, and A⁻ᵀ from L and U.
inline double gradient(const adbench::Matrix<double>& A, adbench::Result<2> by_A) {
    const std::size_t n = A.rows();
    std::vector<double> rows(A.begin(), A.end());
    const std::vector<std::size_t> order = eliminated(rows, n, true);
    double total = 0.0;
    for (std::size_t k = 0; k < n; ++k) total += std::log(std::fabs(rows[order[k] * n + k]));
    std::vector<double> inverse(n * n, 0.0);  // first of L, then of L U
    for (std::size_t i = 0; i < n; ++i) {
        double* here = &inverse[i * n];
        const double* row = &rows[order[i] * n];
        here[i] = 1.0;
        for (std::size_t k = 0; k < i; ++k) {
            for (std::size_t j = 0; j <= k; ++j) here[j] -= row[k] * inverse[k * n + j];
        }
    }
    for (std::size_t i = n; i-- > 0;) {
        double* here = &inverse[i * n];
        const double* row = &rows[order[i] * n];
        for (std::size_t k = i + 1; k < n; ++k) {
            for (std::size_t j = 0; j < n; ++j) here[j] -= row[k] * inverse[k * n + j];
        }
        for (std::size_t j = 0; j < n; ++j) here[j] /= row[i];
    }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) by_A(order[j], i) = inverse[i * n + j];
    }
    return total;
}
