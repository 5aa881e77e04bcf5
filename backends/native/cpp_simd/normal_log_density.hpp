// The normal log density, 32 observations at a time.
#include "../simd.hpp"

#define gradient plain_gradient
#include "../../../cases/normal_log_density.hpp"
#undef gradient

template <class Y, class M, class S>
double gradient(const adbench::Vector<double>& y, double mu, double sigma, Y&& by_y, M&& by_mu, S&& by_sigma) {
    using namespace simd;
    using adbench::wanted;
    constexpr std::size_t parts = 4;
    V sums[parts] = {}, squares[parts] = {};
    const double inverse = 1.0 / sigma, n = static_cast<double>(y.size());
    std::size_t i = 0;
    for (; i + parts * width <= y.size(); i += parts * width) {
        for (std::size_t k = 0; k < parts; ++k) {
            const V z = (load(y.data() + i + k * width) - mu) * inverse;
            sums[k] += z;
            squares[k] += z * z;
            if constexpr (wanted<Y>) store(&by_y[i + k * width], -inverse * z);
        }
    }
    double sum = total((sums[0] + sums[1]) + (sums[2] + sums[3]));
    double square = total((squares[0] + squares[1]) + (squares[2] + squares[3]));
    for (; i < y.size(); ++i) {
        const double z = (y[i] - mu) * inverse;
        sum += z;
        square += z * z;
        if constexpr (wanted<Y>) by_y[i] = -inverse * z;
    }
    if constexpr (wanted<M>) by_mu = sum * inverse;
    if constexpr (wanted<S>) by_sigma = (square - n) * inverse;
    return -0.5 * square - n * (std::log(sigma) + 0.5 * std::log(2.0 * adbench::pi));
}
