#include "adbench.hpp"

template <class T, class M, class P, class Z, class D>
T f(const adbench::Vector<M>& market, const adbench::Vector<P>& model, const adbench::Array<Z, 3>& draws,
    const D& maturity) {
    using std::exp, std::sqrt;
    using Y = adbench::Of<T, P, Z, D>;
    using X = adbench::Of<T, M, P, Z, D>;
    const std::size_t steps = draws.extent(0), paths = draws.extent(2);
    const P &reversion = model[1], &level = model[2], &spread = model[3], &correlation = model[4];
    const adbench::Of<T, D> h = maturity / static_cast<double>(steps), root = sqrt(h);
    const Y divisor = 2.0 + reversion * h, half = 0.5 * root * spread, start = sqrt(model[0]);
    const Y shift = divisor * h * (4.0 * reversion * level - spread * spread) / 4.0;
    const P rest = sqrt(1.0 - correlation * correlation);
    const X drift = market[2] * maturity, discount = exp(-drift);
    T total = 0.0;
    for (std::size_t path = 0; path < paths; ++path) {
        X x = drift;
        Y y = start;
        for (std::size_t k = 0; k < steps; ++k) {
            const Z &z1 = draws(k, std::size_t{0}, path), &z2 = draws(k, std::size_t{1}, path);
            const Y noise = root * (correlation * z1 + rest * z2);
            x += y * (noise - 0.5 * h * y);
            const Y moved = y + half * z1;
            y = (moved + sqrt(moved * moved + shift)) / divisor;
        }
        const T gain = market[0] * exp(x) - market[1];
        if (!(gain < 0.0)) total += gain;  // lets NaN through
    }
    return discount * total / static_cast<double>(paths);
}

// The pathwise adjoint: Giles and Glasserman (2006).
inline double gradient(const adbench::Vector<double>& market, const adbench::Vector<double>& model,
                       const adbench::Array<double, 3>& draws, double maturity, adbench::Result<1> by_market,
                       adbench::Result<1> by_model, adbench::Nothing, adbench::Nothing) {
    const std::size_t steps = draws.extent(0), paths = draws.extent(2);
    const double spot = market[0], strike = market[1], rate = market[2];
    const double reversion = model[1], level = model[2], spread = model[3], correlation = model[4];
    const double h = maturity / static_cast<double>(steps), root = std::sqrt(h), start = std::sqrt(model[0]);
    const double divisor = 2.0 + reversion * h, inside = 4.0 * reversion * level - spread * spread;
    const double half = 0.5 * root * spread, shift = divisor * h * inside / 4.0;
    const double rest = std::sqrt(1.0 - correlation * correlation), drift = rate * maturity;
    const double weight = std::exp(-drift) / static_cast<double>(paths);
    double total = 0.0, in_money = 0.0, ends = 0.0;
    double by_start = 0.0, by_shift = 0.0, by_divisor = 0.0, by_half = 0.0, by_correlation = 0.0;
    struct Step {
        double z1, z2, noise, y, inner;
    };
    std::vector<Step> kept(steps);
    for (std::size_t path = 0; path < paths; ++path) {
        double x = drift, y = start;
        for (std::size_t k = 0; k < steps; ++k) {
            const double z1 = draws(k, std::size_t{0}, path), z2 = draws(k, std::size_t{1}, path);
            const double noise = root * (correlation * z1 + rest * z2), moved = y + half * z1;
            const double inner = std::sqrt(moved * moved + shift);
            kept[k] = {z1, z2, noise, y, inner};
            x += y * (noise - 0.5 * h * y);
            y = (moved + inner) / divisor;
        }
        const double end = spot * std::exp(x);
        if (end < strike) continue;  // lets NaN through
        total += end - strike;
        in_money += 1.0;
        ends += end;
        double by_y = 0.0;  // of this path's payoff; y is the volatility after the step
        for (std::size_t k = steps; k-- > 0;) {
            const Step& at = kept[k];
            const double by_inner = by_y / (at.inner * divisor), by_moved = by_y * y / at.inner;
            by_shift += 0.5 * by_inner;
            by_divisor -= by_y * y / divisor;
            by_half += by_moved * at.z1;
            by_correlation += end * at.y * root * (at.z1 - correlation / rest * at.z2);
            by_y = by_moved + end * (at.noise - h * at.y);
            y = at.y;
        }
        by_start += by_y;
    }
    by_market[0] = weight * ends / spot;
    by_market[1] = -weight * in_money;
    by_market[2] = maturity * weight * (ends - total);
    by_model[0] = weight * by_start / (2.0 * start);
    by_model[1] = weight * h * (by_divisor + by_shift * (h * inside / 4.0 + divisor * level));
    by_model[2] = weight * by_shift * divisor * h * reversion;
    by_model[3] = weight * (0.5 * root * by_half - by_shift * divisor * h * spread / 2.0);
    by_model[4] = weight * by_correlation;
    return weight * total;
}
