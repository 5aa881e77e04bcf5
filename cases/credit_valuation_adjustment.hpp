#include "adbench.hpp"

template <class T, class F, class L, class A, class V, class Z, class G, class C, class H, class D>
T f(const adbench::Vector<F>& forwards, const adbench::Vector<L>& hazards, const A& reversion, const V& volatility,
    const adbench::Matrix<Z>& draws, const adbench::Matrix<G>& gaps, const adbench::Matrix<C>& cash,
    const adbench::Vector<H>& times, const D& loss) {
    using std::exp, std::sqrt;
    using Y = adbench::Of<T, A, V, H>;
    const std::size_t dates = draws.rows(), paths = draws.cols();
    const H h = times[1];
    std::vector<T> bonds, loads, weights;  // P_i; G_ji row by row, and -½ G_ji² y_j, both from i = j
    T sum = 0.0, survival = 1.0;
    bonds.push_back(survival);
    for (const F& rate : forwards) {
        sum += rate;
        bonds.push_back(exp(-h * sum));
    }
    const Y spread = volatility * volatility / (2.0 * reversion);
    const adbench::Of<T, A, H> kept = exp(-reversion * h);
    const Y noise = sqrt(spread * (1.0 - kept * kept));
    for (std::size_t j = 0; j < dates; ++j) {
        const T variance = spread * (1.0 - exp(-2.0 * reversion * times[j]));
        const T last = exp(-reversion * gaps(j, dates));
        for (std::size_t i = j; i <= dates; ++i) {
            const T load = (exp(-reversion * gaps(j, i)) - last) / reversion;
            loads.push_back(load);
            weights.push_back(-0.5 * variance * load * load);
        }
    }
    std::vector<T> exposures(dates, T(0.0));
    for (std::size_t path = 0; path < paths; ++path) {
        Y x = 0.0;
        std::size_t place = 0;
        for (std::size_t j = 0; j < dates; ++j) {
            T value = 0.0;
            for (std::size_t i = j; i <= dates; ++i, ++place) {
                value += cash(j, i) * bonds[i] * exp(x * loads[place] + weights[place]);
            }
            if (!(value < 0.0)) exposures[j] += value;  // lets NaN through
            x = kept * x + noise * draws(j, path);
        }
    }
    T total = 0.0;
    for (std::size_t j = 0; j < dates; ++j) {
        const T after = survival * exp(-h * hazards[j]);
        total += (survival - after) * exposures[j];
        survival = after;
    }
    return loss * total / static_cast<double>(paths);
}

// The pathwise adjoint. Each date's exposure adds to the derivatives in bonds, loads and variances on the way forward;
// only the chain of x goes backward.
inline double gradient(const adbench::Vector<double>& forwards, const adbench::Vector<double>& hazards,
                       double reversion, double volatility, const adbench::Matrix<double>& draws,
                       const adbench::Matrix<double>& gaps, const adbench::Matrix<double>& cash,
                       const adbench::Vector<double>& times, double loss, adbench::Result<1> by_forwards,
                       adbench::Result<1> by_hazards, double& by_reversion, double& by_volatility, adbench::Nothing,
                       adbench::Nothing, adbench::Nothing, adbench::Nothing, adbench::Nothing) {
    const std::size_t dates = draws.rows(), paths = draws.cols(), ends = dates + 1;
    const double a = reversion, h = times[1], kept = std::exp(-a * h);
    const double spread = volatility * volatility / (2.0 * a), noise = std::sqrt(spread * (1.0 - kept * kept));
    std::vector<double> bonds(ends, 1.0), survival(ends, 1.0), loads(dates * ends), variances(dates);
    for (std::size_t j = 0; j < dates; ++j) {
        bonds[j + 1] = bonds[j] * std::exp(-h * forwards[j]);
        survival[j + 1] = survival[j] * std::exp(-h * hazards[j]);
        variances[j] = spread * (1.0 - std::exp(-2.0 * a * times[j]));
        const double last = std::exp(-a * gaps(j, dates));
        for (std::size_t i = j; i < ends; ++i) {
            loads[j * ends + i] = (std::exp(-a * gaps(j, i)) - last) / a;
        }
    }
    std::vector<double> exposures(dates), by_bonds(ends), by_loads(dates * ends), by_variances(dates);
    std::vector<double> x(ends), by_x(dates), priced(ends);
    double by_kept = 0.0, by_noise = 0.0;
    for (std::size_t path = 0; path < paths; ++path) {
        for (std::size_t j = 0; j < dates; ++j) {
            const double* load = loads.data() + j * ends;
            double value = 0.0;
            for (std::size_t i = j; i < ends; ++i) {
                priced[i] = cash(j, i) * bonds[i] * std::exp(load[i] * (x[j] - 0.5 * load[i] * variances[j]));
                value += priced[i];
            }
            by_x[j] = 0.0;
            x[j + 1] = kept * x[j] + noise * draws(j, path);
            if (value < 0.0) continue;  // lets NaN through
            exposures[j] += value;
            const double weight = survival[j] - survival[j + 1];
            for (std::size_t i = j; i < ends; ++i) {
                const double by_exponent = weight * priced[i];
                by_bonds[i] += by_exponent;  // times P_i
                by_x[j] += by_exponent * load[i];
                by_loads[j * ends + i] += by_exponent * (x[j] - load[i] * variances[j]);
                by_variances[j] -= 0.5 * by_exponent * load[i] * load[i];
            }
        }
        double by = 0.0;  // ∂/∂x after the step
        for (std::size_t j = dates; j-- > 0;) {
            by_kept += by * x[j];
            by_noise += by * draws(j, path);
            by = by_x[j] + kept * by;
        }
    }
    const double scale = loss / static_cast<double>(paths);
    double total = 0.0, later = 0.0;
    double by_a = by_noise * (2.0 * h * kept * kept * spread / (2.0 * noise)) - by_kept * h * kept;
    double by_spread = by_noise * noise / (2.0 * spread);
    for (std::size_t j = dates; j-- > 0;) {
        later -= h * by_bonds[j + 1];
        by_forwards[j] = scale * later;
        total += (survival[j] - survival[j + 1]) * exposures[j];
        by_spread += by_variances[j] * variances[j] / spread;
        by_a += by_variances[j] * spread * 2.0 * times[j] * std::exp(-2.0 * a * times[j]);
        const double ahead = gaps(j, dates), last = std::exp(-a * ahead);
        for (std::size_t i = j; i < ends; ++i) {
            const double gap = gaps(j, i);
            by_a += by_loads[j * ends + i] * ((ahead * last - gap * std::exp(-a * gap)) - loads[j * ends + i]) / a;
        }
    }
    double lost_later = 0.0;
    for (std::size_t j = dates; j-- > 0;) {
        by_hazards[j] = scale * h * (survival[j + 1] * exposures[j] - lost_later);
        lost_later += (survival[j] - survival[j + 1]) * exposures[j];
    }
    by_reversion = scale * (by_a - by_spread * spread / a);
    by_volatility = scale * by_spread * volatility / a;
    return scale * total;
}
