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
