#include "_log_sum_exp.hpp"

// Q_k has exp(q_k) on its diagonal and l_k below it, filled by columns: Q(i, j) is l[k][place(d, i, j)] for i > j.
inline std::size_t place(std::size_t d, std::size_t i, std::size_t j) { return j * d - j * (j + 1) / 2 + i - j - 1; }

template <class G>
G log_wishart_constant(std::size_t k, std::size_t d, const G& gamma, std::int64_t m) {
    using std::log;
    const double nu = static_cast<double>(d) + static_cast<double>(m) + 1.0, dimensions = static_cast<double>(d);
    double log_gamma = dimensions * (dimensions - 1.0) / 4.0 * std::log(adbench::pi);
    for (std::size_t j = 0; j < d; ++j) log_gamma += std::lgamma((nu - static_cast<double>(j)) / 2.0);
    return static_cast<double>(k) * (nu * dimensions * log(gamma / std::sqrt(2.0)) - log_gamma);
}

template <class T, class X, class A, class M, class Q, class L, class G>
T f(const adbench::Matrix<X>& x, const adbench::Vector<A>& alpha, const adbench::Matrix<M>& mu,
    const adbench::Matrix<Q>& q, const adbench::Matrix<L>& l, const G& gamma, std::int64_t m) {
    using std::exp;
    using Prior = adbench::Of<T, Q, L, G>;
    using Beta = adbench::Of<T, X, A, M, Q, L>;
    const std::size_t n = x.rows(), d = x.cols(), k = alpha.size();
    std::vector<Q> diagonal(q.size()), sum_of_q(k, Q(0.0));
    Prior squares = 0.0, sum = 0.0;
    for (std::size_t c = 0; c < k; ++c) {
        for (std::size_t j = 0; j < d; ++j) {
            Q& entry = diagonal[c * d + j];
            entry = exp(q(c, j));
            squares += entry * entry;
            sum_of_q[c] += q(c, j);
        }
        for (const L& entry : l[c]) squares += entry * entry;
        sum += sum_of_q[c];
    }
    std::vector<Beta> beta(k);
    std::vector<adbench::Of<T, X, M>> gap(d);
    T total = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t c = 0; c < k; ++c) {
            for (std::size_t j = 0; j < d; ++j) gap[j] = x(i, j) - mu(c, j);
            adbench::Of<T, X, M, Q, L> distance = 0.0;
            for (std::size_t r = 0; r < d; ++r) {
                adbench::Of<T, X, M, Q, L> scaled = diagonal[c * d + r] * gap[r];
                for (std::size_t j = 0; j < r; ++j) scaled += l(c, place(d, r, j)) * gap[j];
                distance += scaled * scaled;
            }
            beta[c] = alpha[c] + sum_of_q[c] - 0.5 * distance;
        }
        total += log_sum_exp_of(beta.data(), k);
    }
    const double rows = static_cast<double>(n), columns = static_cast<double>(d);
    const A weights = log_sum_exp_of(alpha.data(), k);
    const Prior prior =
        log_wishart_constant(k, d, gamma, m) - 0.5 * gamma * gamma * squares + static_cast<double>(m) * sum;
    return total - rows * weights - 0.5 * rows * columns * std::log(2.0 * adbench::pi) + prior;
}

// Uses responsibilities: the share of each component in each observation.
inline double gradient(const adbench::Matrix<double>& x, const adbench::Vector<double>& alpha,
                       const adbench::Matrix<double>& mu, const adbench::Matrix<double>& q,
                       const adbench::Matrix<double>& l, double gamma, std::int64_t m, adbench::Nothing,
                       adbench::Result<1> by_alpha, adbench::Result<2> by_mu, adbench::Result<2> by_q,
                       adbench::Result<2> by_l, adbench::Nothing, adbench::Nothing) {
    const std::size_t n = x.rows(), d = x.cols(), k = alpha.size();
    std::vector<double> diagonal(q.size()), sum_of_q(k, 0.0), beta(k), gap(k * d), scaled(k * d);
    double squares = 0.0, sum = 0.0;
    for (std::size_t c = 0; c < k; ++c) {
        for (std::size_t j = 0; j < d; ++j) {
            const double entry = diagonal[c * d + j] = std::exp(q(c, j));
            sum_of_q[c] += q(c, j);
            squares += entry * entry;
            by_q(c, j) = static_cast<double>(m) - gamma * gamma * entry * entry;
            by_mu(c, j) = 0.0;
        }
        for (std::size_t j = 0; j < l.cols(); ++j) {
            squares += l(c, j) * l(c, j);
            by_l(c, j) = -gamma * gamma * l(c, j);
        }
        sum += sum_of_q[c];
    }
    const double rows = static_cast<double>(n), weights = log_sum_exp_of(alpha.data(), k);
    for (std::size_t c = 0; c < k; ++c) by_alpha[c] = -rows * std::exp(alpha[c] - weights);
    double total = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t c = 0; c < k; ++c) {
            double *g = &gap[c * d], *s = &scaled[c * d], distance = 0.0;
            for (std::size_t j = 0; j < d; ++j) g[j] = x(i, j) - mu(c, j);
            for (std::size_t r = 0; r < d; ++r) {
                s[r] = diagonal[c * d + r] * g[r];
                for (std::size_t j = 0; j < r; ++j) s[r] += l(c, place(d, r, j)) * g[j];
                distance += s[r] * s[r];
            }
            beta[c] = alpha[c] + sum_of_q[c] - 0.5 * distance;
        }
        const double all = log_sum_exp_of(beta.data(), k);
        total += all;
        for (std::size_t c = 0; c < k; ++c) {
            const double share = std::exp(beta[c] - all), *g = &gap[c * d], *s = &scaled[c * d];
            by_alpha[c] += share;
            for (std::size_t r = 0; r < d; ++r) {
                const double by_scaled = -share * s[r];
                by_q(c, r) += share + by_scaled * g[r] * diagonal[c * d + r];
                by_mu(c, r) -= by_scaled * diagonal[c * d + r];
                for (std::size_t j = 0; j < r; ++j) {
                    by_l(c, place(d, r, j)) += by_scaled * g[j];
                    by_mu(c, j) -= by_scaled * l(c, place(d, r, j));
                }
            }
        }
    }
    const double prior =
        log_wishart_constant(k, d, gamma, m) - 0.5 * gamma * gamma * squares + static_cast<double>(m) * sum;
    return total - rows * weights - 0.5 * rows * static_cast<double>(d) * std::log(2.0 * adbench::pi) + prior;
}
