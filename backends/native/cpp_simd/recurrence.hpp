// The recurrence for 32 numbers at a time.
#include <algorithm>
#include <array>

#define gradient plain_gradient
#include "../../../cases/recurrence.hpp"
#undef gradient

inline double gradient(const adbench::Vector<double>& x, adbench::Result<1> by_x) {
    constexpr std::size_t block = 32;
    const std::size_t n = x.size();
    std::vector<double> sums(n);
    for (std::size_t start = 0; start < n; start += block) {
        const std::size_t count = std::min(block, n - start);
        const std::size_t lanes = count <= 1 ? 1 : count <= 8 ? 8 : block;
        std::array<double, block> s, slope, at, gain;
        for (std::size_t i = 0; i < lanes; ++i) {
            at[i] = x[start + std::min(i, count - 1)];
            gain[i] = at[i] * at[i] + 1.0;
            s[i] = 1.0;
            slope[i] = 0.0;
        }
        const auto turn = [&](std::size_t i) {
            const double inverse = 1.0 / s[i];
            slope[i] += (2.0 * at[i] - slope[i] * gain[i] * inverse) * inverse;
            s[i] += gain[i] * inverse;
        };
        for (int times = 0; times < 100; ++times) {
            if (lanes == 1) {
                turn(0);
            } else if (lanes == 8) {
                for (std::size_t i = 0; i < 8; ++i) turn(i);
            } else {
                for (std::size_t i = 0; i < block; ++i) turn(i);
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            sums[start + i] = s[i];
            by_x[start + i] = 8.0 * slope[i];
        }
    }
    double total = 0.0, sum = 0.0, from_here_on = 0.0;
    for (double& each : sums) {
        each = sum += each;
        total += 4.0 * sum * sum;
    }
    for (std::size_t i = n; i-- > 0;) by_x[i] *= from_here_on += sums[i];
    return total;
}
