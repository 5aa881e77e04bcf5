#include "adbench.hpp"

template <class T, class S, class V, class O, class X, class D>
T f(const adbench::Vector<S>& start, const V& viscosity, const adbench::Vector<O>& observed, const X& dx, const D& dt,
    std::int64_t steps) {
    const std::size_t n = start.size();
    const adbench::Of<T, X, D> drift = dt / (4.0 * dx);
    const adbench::Of<T, V, X, D> spread = viscosity * (dt / (dx * dx));
    std::vector<T> u(start.begin(), start.end()), next(u);
    for (std::int64_t k = 0; k < steps; ++k) {
        for (std::size_t i = 0; i < n; ++i) {
            const T &before = u[i > 0 ? i - 1 : n - 1], &after = u[i + 1 < n ? i + 1 : 0];
            next[i] = u[i] - drift * (after * after - before * before) + spread * (after - 2.0 * u[i] + before);
        }
        u.swap(next);
    }
    T total = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const T gap = u[i] - observed[i];
        total += gap * gap;
    }
    return 0.5 * total;
}

inline double gradient(const adbench::Vector<double>& start, double viscosity, const adbench::Vector<double>& observed,
                       double dx, double dt, std::int64_t steps, adbench::Result<1> by_start, double& by_viscosity,
                       adbench::Nothing, adbench::Nothing, adbench::Nothing, adbench::Nothing) {
    const std::size_t n = start.size(), count = static_cast<std::size_t>(steps);
    const double drift = dt / (4.0 * dx), rate = dt / (dx * dx), spread = viscosity * rate;
    std::vector<double> states((count + 1) * n), adjoint(n), next(n);
    std::copy(start.begin(), start.end(), states.begin());
    // Calls `visit(i, before, after)` for every point i and its neighbours, without a branch inside the circle.
    const auto around = [n](const auto& visit) {
        visit(0, n - 1, 1);
        for (std::size_t i = 1; i + 1 < n; ++i) visit(i, i - 1, i + 1);
        visit(n - 1, n - 2, 0);
    };
    for (std::size_t k = 0; k < count; ++k) {
        const double* u = &states[k * n];
        double* following = &states[(k + 1) * n];
        around([&](std::size_t i, std::size_t b, std::size_t a) {
            following[i] = u[i] - drift * (u[a] * u[a] - u[b] * u[b]) + spread * (u[a] - 2.0 * u[i] + u[b]);
        });
    }
    double total = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        adjoint[i] = states[count * n + i] - observed[i];
        total += adjoint[i] * adjoint[i];
    }
    by_viscosity = 0.0;
    for (std::size_t k = count; k-- > 0;) {
        const double *u = &states[k * n], *w = adjoint.data();
        around([&](std::size_t i, std::size_t b, std::size_t a) {
            by_viscosity += w[i] * rate * (u[a] - 2.0 * u[i] + u[b]);
            next[i] = w[i] + 2.0 * drift * u[i] * (w[a] - w[b]) + spread * (w[a] - 2.0 * w[i] + w[b]);
        });
        adjoint.swap(next);
    }
    std::copy(adjoint.begin(), adjoint.end(), by_start.begin());
    return 0.5 * total;
}
