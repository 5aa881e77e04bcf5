#include "_dormand_prince.hpp"

template <class T, class P, class S, class A, class B>
T f(const adbench::Vector<P>& theta, const adbench::Vector<S>& start, const A& t0, const B& t1, double unit,
    double tolerance) {
    using State = std::array<T, 2>;
    const auto slope = [&](const State& s) -> State {
        return {s[0] * (theta[0] - theta[1] * s[1]), s[1] * (theta[3] * s[0] - theta[2])};
    };
    const auto moved = [](const State& s, const auto& size, const State& by, bool) -> State {
        return {s[0] + size * by[0], s[1] + size * by[1]};
    };
    const adbench::Of<T, A> from = unit * t0;
    const adbench::Of<T, B> to = unit * t1;
    const State s = integrated<T>(slope, moved, State{start[0], start[1]}, from, to, 0.25, tolerance);
    return s[0] + s[1];
}

// Forward sensitivities: the variational equations through the same steps.
inline double gradient(const adbench::Vector<double>& theta, const adbench::Vector<double>& start, double t0, double t1,
                       double unit, double tolerance, adbench::Result<1> by_theta, adbench::Result<1> by_start,
                       double& by_t0, double& by_t1, adbench::Nothing, adbench::Nothing) {
    const double a = theta[0], b = theta[1], c = theta[2], d = theta[3];
    using State = std::array<double, 16>;  // prey and predators, then their derivatives by θ, start and end
    const auto slope = [&](const State& s) {
        const double prey = s[0], predators = s[1];
        State k{prey * (a - b * predators), predators * (d * prey - c)};
        for (int i = 2; i < 16; i += 2) {
            k[i] = (a - b * predators) * s[i] - b * prey * s[i + 1];
            k[i + 1] = d * predators * s[i] + (d * prey - c) * s[i + 1];
        }
        k[2] += prey;
        k[4] -= prey * predators;
        k[7] -= predators;
        k[9] += prey * predators;
        return k;
    };
    const auto moved = [](const State& s, double size, const State& by, bool last) {
        State to;
        for (int i = 0; i < 16; ++i) to[i] = s[i] + size * by[i];
        if (last) {
            to[14] += by[0];
            to[15] += by[1];
        }
        return to;
    };
    State from{start[0], start[1]};
    from[10] = from[13] = 1.0;
    const State s = integrated<double>(slope, moved, from, unit * t0, unit * t1, 0.25, tolerance);
    for (int i = 0; i < 4; ++i) by_theta[i] = s[2 + 2 * i] + s[3 + 2 * i];
    for (int i = 0; i < 2; ++i) by_start[i] = s[10 + 2 * i] + s[11 + 2 * i];
    by_t1 = unit * (s[14] + s[15]);
    by_t0 = -by_t1;
    return s[0] + s[1];
}
