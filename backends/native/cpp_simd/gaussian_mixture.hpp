// The Gaussian mixture for 64 observations at a time, with vectorised exponentials and logarithms.
#include <algorithm>
#include <array>

#define gradient plain_gradient
#include "../../../cases/gaussian_mixture.hpp"
#undef gradient

inline double gradient(const adbench::Matrix<double>& x, const adbench::Vector<double>& alpha,
                       const adbench::Matrix<double>& mu, const adbench::Matrix<double>& q,
                       const adbench::Matrix<double>& l, double gamma, std::int64_t m, adbench::Nothing,
                       adbench::Result<1> by_alpha, adbench::Result<2> by_mu, adbench::Result<2> by_q,
                       adbench::Result<2> by_l, adbench::Nothing, adbench::Nothing) {
    constexpr std::size_t block = 64;
    using Row = std::array<double, block>;
    const std::size_t n = x.rows(), d = x.cols(), k = alpha.size();
    std::vector<double> diagonal(q.size()), sum_of_q(k, 0.0);
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
    std::vector<Row> at(d), gap(k * d), scaled(k * d), beta(k);
    Row largest, shares, live;
    double total = 0.0;
    for (std::size_t start = 0; start < n; start += block) {
        const std::size_t count = std::min(block, n - start);
        for (std::size_t i = 0; i < block; ++i) {  // the last block repeats its last observation, with weight 0
            live[i] = i < count ? 1.0 : 0.0;
            for (std::size_t j = 0; j < d; ++j) at[j][i] = x(start + std::min(i, count - 1), j);
        }
        for (std::size_t c = 0; c < k; ++c) {
            Row distance{};
            for (std::size_t r = 0; r < d; ++r) {
                Row &g = gap[c * d + r], &s = scaled[c * d + r];
                const double centre = mu(c, r), scale = diagonal[c * d + r];
                for (std::size_t i = 0; i < block; ++i) s[i] = scale * (g[i] = at[r][i] - centre);
                for (std::size_t j = 0; j < r; ++j) {
                    const double factor = l(c, place(d, r, j));
                    const Row& other = gap[c * d + j];
                    for (std::size_t i = 0; i < block; ++i) s[i] += factor * other[i];
                }
                for (std::size_t i = 0; i < block; ++i) distance[i] += s[i] * s[i];
            }
            const double offset = alpha[c] + sum_of_q[c];
            for (std::size_t i = 0; i < block; ++i) {
                beta[c][i] = offset - 0.5 * distance[i];
                largest[i] = c == 0 ? beta[c][i] : std::max(largest[i], beta[c][i]);
            }
        }
        shares.fill(0.0);
        for (std::size_t c = 0; c < k; ++c) {
            for (std::size_t i = 0; i < block; ++i) shares[i] += beta[c][i] = std::exp(beta[c][i] - largest[i]);
        }
        for (std::size_t i = 0; i < block; ++i) total += live[i] * (largest[i] + std::log(shares[i]));
        for (std::size_t i = 0; i < block; ++i) shares[i] = live[i] / shares[i];
        for (std::size_t c = 0; c < k; ++c) {
            Row& share = beta[c];
            double of_shares = 0.0;
            for (std::size_t i = 0; i < block; ++i) of_shares += share[i] *= shares[i];
            by_alpha[c] += of_shares;
            for (std::size_t r = 0; r < d; ++r) {
                Row &g = gap[c * d + r], &s = scaled[c * d + r];
                double along = 0.0, across = 0.0;
                for (std::size_t i = 0; i < block; ++i) {
                    s[i] *= -share[i];
                    along += s[i] * g[i];
                    across += s[i];
                }
                by_q(c, r) += of_shares + along * diagonal[c * d + r];
                by_mu(c, r) -= across * diagonal[c * d + r];
                for (std::size_t j = 0; j < r; ++j) {
                    const Row& other = gap[c * d + j];
                    double product = 0.0;
                    for (std::size_t i = 0; i < block; ++i) product += s[i] * other[i];
                    by_l(c, place(d, r, j)) += product;
                    by_mu(c, j) -= across * l(c, place(d, r, j));
                }
            }
        }
    }
    const double prior =
        log_wishart_constant(k, d, gamma, m) - 0.5 * gamma * gamma * squares + static_cast<double>(m) * sum;
    return total - rows * weights - 0.5 * rows * static_cast<double>(d) * std::log(2.0 * adbench::pi) + prior;
}
