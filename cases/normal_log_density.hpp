#include "adbench.hpp"

template <class T, class Y, class M, class S>
T f(const adbench::Vector<Y>& y, const M& mu, const S& sigma) {
    using std::log;
    T squares = 0.0;
    for (const Y& observation : y) {
        const T z = (observation - mu) / sigma;
        squares += z * z;
    }
    return -0.5 * squares - static_cast<double>(y.size()) * (log(sigma) + 0.5 * std::log(2.0 * M_PI));
}

inline double gradient(const adbench::Vector<double>& y, double mu, double sigma, double& by_mu, double& by_sigma) {
    double sum = 0.0, squares = 0.0;
    const double inverse = 1.0 / sigma, n = static_cast<double>(y.size());
    for (const double observation : y) {
        const double z = (observation - mu) * inverse;
        sum += z;
        squares += z * z;
    }
    by_mu = sum * inverse;
    by_sigma = (squares - n) * inverse;
    return -0.5 * squares - n * (std::log(sigma) + 0.5 * std::log(2.0 * M_PI));
}
