#include "adbench.hpp"

template <class T, class X, class Y>
T f(const X& x1, const Y& x2) {
    return 2.0 * x1 * x2 + 7.0;
}

inline double gradient(double x1, double x2, double& by_x1, double& by_x2) {
    by_x1 = 2.0 * x2;
    by_x2 = 2.0 * x1;
    return 2.0 * x1 * x2 + 7.0;
}
