#include "_normal_gradient.hpp"

template <class T, class Y, class M, class S>
T f(const adbench::Vector<Y>& y, const M& mu, const S& sigma) {
    using std::log;
    T total = 0.0;
    for (const Y& observation : y) {
        const adbench::Of<T, Y, M, S> z = (observation - mu) / sigma;
        total += -0.5 * z * z - log(sigma) - 0.5 * std::log(2.0 * adbench::pi);
    }
    return total;
}
