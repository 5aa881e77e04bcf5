#include <stan/math/rev/fun/log_sum_exp.hpp>

template <class T, class X>
T f(const X& x) {
    return stan::math::log_sum_exp(x);
}
