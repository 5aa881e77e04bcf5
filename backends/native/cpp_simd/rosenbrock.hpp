// Rosenbrock's function, 16 terms at a time: each derivative has its own two terms, so that none waits for another.
#include "../simd.hpp"

#define gradient plain_gradient
#include "../../../cases/rosenbrock.hpp"
#undef gradient

inline double gradient(const adbench::Vector<double>& x, adbench::Result<1> by_x) {
    using namespace simd;
    const double* at = x.data();
    const std::size_t last = x.size() - 1;
    if (last == 0) return by_x[0] = 0.0;
    V sums[2] = {};
    double first = at[1] - at[0] * at[0], rest = 1.0 - at[0], sum = 100.0 * first * first + rest * rest;
    by_x[0] = -400.0 * at[0] * first - 2.0 * rest;
    std::size_t i = 1;
    for (; i + 2 * width <= last; i += 2 * width) {
        for (std::size_t k = 0; k < 2; ++k) {
            const double* here = at + i + k * width;
            const V before = load(here - 1), now = load(here), next = load(here + 1), gap = next - now * now;
            sums[k] += 100.0 * gap * gap + (1.0 - now) * (1.0 - now);
            store(&by_x[i + k * width], 200.0 * (now - before * before) - 400.0 * now * gap - 2.0 * (1.0 - now));
        }
    }
    sum += total(sums[0] + sums[1]);
    for (; i < last; ++i) {
        const double gap = at[i + 1] - at[i] * at[i];
        rest = 1.0 - at[i];
        sum += 100.0 * gap * gap + rest * rest;
        by_x[i] = 200.0 * (at[i] - at[i - 1] * at[i - 1]) - 400.0 * at[i] * gap - 2.0 * rest;
    }
    by_x[last] = 200.0 * (at[last] - at[last - 1] * at[last - 1]);
    return sum;
}
