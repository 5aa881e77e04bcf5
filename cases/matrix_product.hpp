#include "adbench.hpp"

template <class T, class X, class Y>
T f(const adbench::Matrix<X>& A, const adbench::Matrix<Y>& B) {
    T total = 0.0;
    std::vector<T> row(B.cols());
    for (std::size_t i = 0; i < A.rows(); ++i) {
        std::fill(row.begin(), row.end(), T(0.0));
        for (std::size_t k = 0; k < A.cols(); ++k) {
            for (std::size_t j = 0; j < B.cols(); ++j) row[j] += A(i, k) * B(k, j);
        }
        for (const T& entry : row) total += entry;
    }
    return total;
}

// Σ_ij (A B)_ij = Σ_k (Σ_i A_ik) (Σ_j B_kj): no matrix product needed.
inline double gradient(const adbench::Matrix<double>& A, const adbench::Matrix<double>& B, adbench::Result<2> by_A,
                       adbench::Result<2> by_B) {
    std::vector<double> of_columns(A.cols(), 0.0), of_rows(B.rows(), 0.0);
    for (std::size_t i = 0; i < A.rows(); ++i) {
        for (std::size_t k = 0; k < A.cols(); ++k) of_columns[k] += A(i, k);
    }
    double total = 0.0;
    for (std::size_t k = 0; k < B.rows(); ++k) {
        for (std::size_t j = 0; j < B.cols(); ++j) of_rows[k] += B(k, j);
        std::fill_n(&by_B(k, 0), B.cols(), of_columns[k]);
        total += of_columns[k] * of_rows[k];
    }
    for (std::size_t i = 0; i < A.rows(); ++i) std::copy(of_rows.begin(), of_rows.end(), &by_A(i, 0));
    return total;
}
