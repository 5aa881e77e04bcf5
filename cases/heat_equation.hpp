#include "adbench.hpp"

namespace heat {

constexpr double step = 0.2;

// The neighbours' sum minus four times the value, at row i and column j of n × n values that are 0 outside.
template <class U, class Values>
U laplacian(const Values& u, std::size_t n, std::size_t i, std::size_t j) {
    const std::size_t here = i * n + j;
    U sum = -4.0 * u[here];
    if (i > 0) sum += u[here - n];
    if (i + 1 < n) sum += u[here + n];
    if (j > 0) sum += u[here - 1];
    if (j + 1 < n) sum += u[here + 1];
    return sum;
}

}  // namespace heat

template <class T, class S, class K, class O>
T f(const adbench::Matrix<S>& start, const adbench::Matrix<K>& kappa, const adbench::Matrix<O>& observed,
    std::int64_t steps) {
    const std::size_t n = start.rows();
    std::vector<T> u(start.begin(), start.end()), next(u);
    for (std::int64_t k = 0; k < steps; ++k) {
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                const T change = heat::laplacian<T>(u, n, i, j);
                next[i * n + j] = u[i * n + j] + heat::step * kappa(i, j) * change;
            }
        }
        u.swap(next);
    }
    T total = 0.0;
    for (std::size_t i = 0; i < u.size(); ++i) {
        const T gap = u[i] - observed.data()[i];
        total += gap * gap;
    }
    return 0.5 * total;
}

inline double gradient(const adbench::Matrix<double>& start, const adbench::Matrix<double>& kappa,
                       const adbench::Matrix<double>& observed, std::int64_t steps, adbench::Result<2> by_start,
                       adbench::Result<2> by_kappa, adbench::Nothing, adbench::Nothing) {
    const std::size_t n = start.rows(), cells = n * n;
    const double* k = kappa.data();
    std::vector<double> u(start.begin(), start.end()), slopes(static_cast<std::size_t>(steps) * cells), scaled(cells);
    for (double* slope = slopes.data(); slope != slopes.data() + slopes.size(); slope += cells) {
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) slope[i * n + j] = heat::step * heat::laplacian<double>(u, n, i, j);
        }
        for (std::size_t c = 0; c < cells; ++c) u[c] += k[c] * slope[c];
    }
    double total = 0.0;
    for (std::size_t c = 0; c < cells; ++c) {
        u[c] -= observed.data()[c];  // from here on the adjoint
        total += u[c] * u[c];
    }
    std::fill(by_kappa.begin(), by_kappa.end(), 0.0);
    for (std::size_t at = static_cast<std::size_t>(steps); at-- > 0;) {
        for (std::size_t c = 0; c < cells; ++c) {
            by_kappa.data()[c] += u[c] * slopes[at * cells + c];
            scaled[c] = heat::step * k[c] * u[c];
        }
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) u[i * n + j] += heat::laplacian<double>(scaled, n, i, j);
        }
    }
    std::copy(u.begin(), u.end(), by_start.begin());
    return 0.5 * total;
}
