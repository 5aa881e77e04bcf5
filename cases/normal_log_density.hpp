#include "_normal_gradient.hpp"

template <class T, class Y, class M, class S>
T f(const adbench::Vector<Y>& y, const M& mu, const S& sigma) {
    using std::log;
    using Z = adbench::Of<T, Y, M, S>;
    Z squares = 0.0;
    for (const Y& observation : y) {
        const Z z = (observation - mu) / sigma;
        squares += z * z;
    }
    return -0.5 * squares - static_cast<double>(y.size()) * (log(sigma) + 0.5 * std::log(2.0 * adbench::pi));
}
