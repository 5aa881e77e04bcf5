#include "adbench.hpp"

template <class T, class A, class R, class N, class B, class F, class K, class E, class Q>
T f(const adbench::Vector<A>& alpha, const adbench::Vector<R>& rho, const adbench::Vector<N>& nu, const B& beta,
    const adbench::Vector<F>& forwards, const adbench::Matrix<K>& strikes, const adbench::Vector<E>& expiries,
    const adbench::Matrix<Q>& quotes) {
    using std::exp, std::log, std::sqrt;
    using C = adbench::Of<T, B, F, K>;  // of the contract alone
    const B power = 1.0 - beta;
    T total = 0.0;
    for (std::size_t i = 0; i < strikes.rows(); ++i) {
        const A& a = alpha[i];
        const R& r = rho[i];
        const N& v = nu[i];
        const adbench::Of<T, A, N> relative = v / a;
        const adbench::Of<T, R, N, B> mixed = 0.25 * beta * r * v;
        const adbench::Of<T, R, N> convex = (2.0 - 3.0 * r * r) / 24.0 * v * v;
        for (std::size_t k = 0; k < strikes.cols(); ++k) {
            const C away = log(forwards[i] / strikes(i, k));
            const C m = exp(0.5 * power * log(forwards[i] * strikes(i, k)));
            const C square = power * away * power * away;
            const C scale = m * (1.0 + square / 24.0 + square * square / 1920.0);
            const T z = relative * m * away;
            const T chi = log((sqrt(1.0 - 2.0 * r * z + z * z) + z - r) / (1.0 - r));
            const T ratio = a / m;
            const T correction = power * power / 24.0 * ratio * ratio + mixed * ratio + convex;
            const T error = 100.0 * (a / scale * z / chi * (1.0 + expiries[i] * correction) - quotes(i, k));
            total += error * error;
        }
    }
    return total;
}

inline double gradient(const adbench::Vector<double>& alpha, const adbench::Vector<double>& rho,
                       const adbench::Vector<double>& nu, double beta, const adbench::Vector<double>& forwards,
                       const adbench::Matrix<double>& strikes, const adbench::Vector<double>& expiries,
                       const adbench::Matrix<double>& quotes, adbench::Result<1> by_alpha, adbench::Result<1> by_rho,
                       adbench::Result<1> by_nu, adbench::Nothing, adbench::Nothing, adbench::Nothing, adbench::Nothing,
                       adbench::Nothing) {
    const double power = 1.0 - beta;
    double total = 0.0;
    for (std::size_t i = 0; i < strikes.rows(); ++i) {
        const double a = alpha[i], r = rho[i], v = nu[i], t = expiries[i];
        by_alpha[i] = by_rho[i] = by_nu[i] = 0.0;
        for (std::size_t k = 0; k < strikes.cols(); ++k) {
            const double away = std::log(forwards[i] / strikes(i, k)), square = power * power * away * away;
            const double m = std::exp(0.5 * power * std::log(forwards[i] * strikes(i, k)));
            const double level = a / (m * (1.0 + square / 24.0 + square * square / 1920.0));
            const double z = v / a * m * away, s = std::sqrt(1.0 - 2.0 * r * z + z * z);
            const double chi = std::log((s + z - r) / (1.0 - r)), u = z / chi, q = a / m;
            const double z_u_z = z * (1.0 - u / s) / chi;
            const double u_r = u / chi * ((1.0 + z / s) / (s + z - r) - 1.0 / (1.0 - r));
            const double b = 1.0 + t * (power * power * q * q / 24.0 + r * beta * v * q / 4.0 +
                                        (2.0 - 3.0 * r * r) * v * v / 24.0);
            const double error = 100.0 * (level * u * b - quotes(i, k)), weight = 200.0 * error * level;
            by_alpha[i] += weight * ((u - z_u_z) * b / a + u * t * (power * power * q / 12.0 + r * beta * v / 4.0) / m);
            by_rho[i] += weight * (u_r * b + u * t * (beta * v * q - r * v * v) / 4.0);
            by_nu[i] += weight * (z_u_z * b / v + u * t * (r * beta * q / 4.0 + (2.0 - 3.0 * r * r) * v / 12.0));
            total += error * error;
        }
    }
    return total;
}
