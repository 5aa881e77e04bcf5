#include "adbench.hpp"

template <class T, class L, class V, class Z, class M, class F, class D>
T f(const adbench::Vector<L>& forwards, const adbench::Vector<V>& volatilities, const adbench::Matrix<Z>& draws,
    const adbench::Matrix<M>&, const adbench::Matrix<F>& flows, const D& accrual) {
    using std::exp, std::sqrt;
    const std::size_t steps = draws.rows(), paths = draws.cols(), count = forwards.size();
    const D root = sqrt(accrual);
    std::vector<T> rates(count), bonds(count - steps);
    T total = 0.0;
    for (std::size_t path = 0; path < paths; ++path) {
        for (std::size_t i = 0; i < count; ++i) rates[i] = forwards[i];
        for (std::size_t k = 0; k < steps; ++k) {
            const adbench::Of<T, D, Z> noise = root * draws(k, path);
            T drift = 0.0;
            for (std::size_t i = k + 1; i < count; ++i) {
                const V& volatility = volatilities[i - 1];
                const T grown = accrual * rates[i];
                drift += volatility * grown / (1.0 + grown);
                rates[i] = rates[i] * exp(volatility * (accrual * (drift - 0.5 * volatility) + noise));
            }
        }
        T discount = 1.0, bond = 1.0;
        for (std::size_t i = 0; i < steps; ++i) discount = discount / (1.0 + accrual * rates[i]);
        for (std::size_t i = steps; i < count; ++i) {
            bond = bond / (1.0 + accrual * rates[i]);
            bonds[i - steps] = bond;
        }
        T payoff = 0.0;
        for (std::size_t c = 0; c < flows.cols(); ++c) {
            T swap = 1.0;
            for (std::size_t i = 0; i < flows.rows(); ++i) {
                if (flows(i, c) != 0.0) swap -= flows(i, c) * bonds[i];
            }
            if (!(swap < 0.0)) payoff += swap;  // lets NaN through
        }
        total += discount * payoff;
    }
    return 100.0 * total / static_cast<double>(paths);
}

// The pathwise adjoint: Giles and Glasserman (2006), with one sum over the rates for each step.
inline double gradient(const adbench::Vector<double>& forwards, const adbench::Vector<double>& volatilities,
                       const adbench::Matrix<double>& draws, const adbench::Matrix<double>&,
                       const adbench::Matrix<double>& flows, double accrual, adbench::Result<1> by_forwards,
                       adbench::Result<1> by_volatilities, adbench::Nothing, adbench::Nothing, adbench::Nothing,
                       adbench::Nothing) {
    const std::size_t steps = draws.rows(), paths = draws.cols(), count = forwards.size();
    const double root = std::sqrt(accrual), scale = 100.0 / static_cast<double>(paths);
    std::vector<double> rates((steps + 1) * count), exponents(steps * count);  // before each step, and of it
    std::vector<double> bonds(count - steps), by_bonds(count - steps), by_rates(count);
    std::fill(by_forwards.begin(), by_forwards.end(), 0.0);
    std::fill(by_volatilities.begin(), by_volatilities.end(), 0.0);
    double total = 0.0;
    for (std::size_t path = 0; path < paths; ++path) {
        std::copy(forwards.begin(), forwards.end(), rates.begin());
        for (std::size_t k = 0; k < steps; ++k) {
            const double *here = rates.data() + k * count, noise = root * draws(k, path);
            double *next = rates.data() + (k + 1) * count, *exponent = exponents.data() + k * count, drift = 0.0;
            std::copy(here, here + k + 1, next);
            for (std::size_t i = k + 1; i < count; ++i) {
                const double volatility = volatilities[i - 1], grown = accrual * here[i];
                drift += volatility * grown / (1.0 + grown);
                exponent[i] = accrual * (drift - 0.5 * volatility) + noise;  // over the volatility
                next[i] = here[i] * std::exp(volatility * exponent[i]);
            }
        }
        const double* fixed = rates.data() + steps * count;
        double discount = 1.0, bond = 1.0, payoff = 0.0;
        for (std::size_t i = 0; i < steps; ++i) discount /= 1.0 + accrual * fixed[i];
        for (std::size_t i = steps; i < count; ++i) bonds[i - steps] = bond /= 1.0 + accrual * fixed[i];
        std::fill(by_bonds.begin(), by_bonds.end(), 0.0);
        for (std::size_t c = 0; c < flows.cols(); ++c) {
            double swap = 1.0;
            for (std::size_t i = 0; i < flows.rows(); ++i) swap -= flows(i, c) * bonds[i];
            if (swap < 0.0) continue;  // lets NaN through
            payoff += swap;
            for (std::size_t i = 0; i < flows.rows(); ++i) by_bonds[i] -= flows(i, c);
        }
        const double paid = discount * payoff;
        total += paid;
        double later = 0.0;
        for (std::size_t i = count; i-- > steps;) {
            later += discount * by_bonds[i - steps] * bonds[i - steps];
            by_rates[i] = -later * accrual / (1.0 + accrual * fixed[i]);
        }
        for (std::size_t i = 0; i < steps; ++i) by_rates[i] = -paid * accrual / (1.0 + accrual * fixed[i]);
        for (std::size_t k = steps; k-- > 0;) {
            const double *here = rates.data() + k * count, *next = here + count;
            const double* exponent = exponents.data() + k * count;
            double by_drift = 0.0;
            for (std::size_t i = count; i-- > k + 1;) {
                const double volatility = volatilities[i - 1], one = 1.0 / (1.0 + accrual * here[i]);
                const double by_exponent = by_rates[i] * next[i];
                by_drift += by_exponent * volatility * accrual;
                by_rates[i] = by_exponent / here[i] + by_drift * volatility * accrual * one * one;
                by_volatilities[i - 1] += scale * (by_exponent * (exponent[i] - 0.5 * accrual * volatility) +
                                                   by_drift * accrual * here[i] * one);
            }
        }
        for (std::size_t i = 0; i < count; ++i) by_forwards[i] += scale * by_rates[i];
    }
    return scale * total;
}
