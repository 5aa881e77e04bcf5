#include <array>

#include "adbench.hpp"

template <class T, class P, class S, class D>
T f(const adbench::Vector<P>& theta, const adbench::Vector<S>& start, const D& duration, std::int64_t steps) {
    using State = std::array<T, 2>;
    const adbench::Of<T, D> h = duration / static_cast<double>(steps);
    const auto slope = [&](const State& s) -> State {
        return {s[0] * (theta[0] - theta[1] * s[1]), s[1] * (theta[3] * s[0] - theta[2])};
    };
    const auto moved = [](const State& s, const auto& by, const State& k) -> State {
        return {s[0] + by * k[0], s[1] + by * k[1]};
    };
    const adbench::Of<T, D> half = h / 2.0, sixth = h / 6.0;
    State s{start[0], start[1]};
    for (std::int64_t step = 0; step < steps; ++step) {
        const State k1 = slope(s), k2 = slope(moved(s, half, k1)), k3 = slope(moved(s, half, k2));
        const State k4 = slope(moved(s, h, k3));
        for (int i = 0; i < 2; ++i) s[i] = s[i] + sixth * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
    }
    return s[0] + s[1];
}

// The adjoint of the same steps, from their states.
inline double gradient(const adbench::Vector<double>& theta, const adbench::Vector<double>& start, double duration,
                       std::int64_t steps, adbench::Result<1> by_theta, adbench::Result<1> by_start, adbench::Nothing,
                       adbench::Nothing) {
    using State = std::array<double, 2>;
    const double a = theta[0], b = theta[1], c = theta[2], d = theta[3], h = duration / static_cast<double>(steps);
    const auto slope = [&](const State& s) -> State { return {s[0] * (a - b * s[1]), s[1] * (d * s[0] - c)}; };
    const auto moved = [](const State& s, double by, const State& k) -> State {
        return {s[0] + by * k[0], s[1] + by * k[1]};
    };
    std::vector<std::array<State, 4>> stages(static_cast<std::size_t>(steps));  // the state of each slope
    State s{start[0], start[1]};
    for (auto& [s1, s2, s3, s4] : stages) {
        s1 = s;
        const State k1 = slope(s1);
        const State k2 = slope(s2 = moved(s, h / 2.0, k1));
        const State k3 = slope(s3 = moved(s, h / 2.0, k2));
        const State k4 = slope(s4 = moved(s, h, k3));
        for (int i = 0; i < 2; ++i) s[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
    }
    std::array<double, 4> g{};
    State w{1.0, 1.0};  // ∂f/∂s
    const auto back = [&](const State& at, const State& by) -> State {  // by: the adjoint of the slope there
        g[0] += by[0] * at[0];
        g[1] -= by[0] * at[0] * at[1];
        g[2] -= by[1] * at[1];
        g[3] += by[1] * at[0] * at[1];
        return {by[0] * (a - b * at[1]) + by[1] * d * at[1], by[1] * (d * at[0] - c) - by[0] * b * at[0]};
    };
    for (std::size_t step = stages.size(); step-- > 0;) {
        const auto& [s1, s2, s3, s4] = stages[step];
        const State w4 = back(s4, {h / 6.0 * w[0], h / 6.0 * w[1]});
        const State w3 = back(s3, {h / 3.0 * w[0] + h * w4[0], h / 3.0 * w[1] + h * w4[1]});
        const State w2 = back(s2, {h / 3.0 * w[0] + h / 2.0 * w3[0], h / 3.0 * w[1] + h / 2.0 * w3[1]});
        const State w1 = back(s1, {h / 6.0 * w[0] + h / 2.0 * w2[0], h / 6.0 * w[1] + h / 2.0 * w2[1]});
        for (int i = 0; i < 2; ++i) w[i] += w1[i] + w2[i] + w3[i] + w4[i];
    }
    std::copy(g.begin(), g.end(), by_theta.begin());
    std::copy(w.begin(), w.end(), by_start.begin());
    return s[0] + s[1];
}
