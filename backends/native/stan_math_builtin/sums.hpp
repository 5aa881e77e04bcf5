#include <stan/math/rev/fun/sum.hpp>

template <class T, class X>
T f(const X& x) {
    return stan::math::sum(x);
}
