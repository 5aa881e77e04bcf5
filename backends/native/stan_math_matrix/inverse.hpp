#include <stan/math/prim/fun/inverse.hpp>
#include <stan/math/rev/fun/inverse.hpp>
#include <stan/math/rev/fun/sum.hpp>

template <class T, class X>
T f(const X& A) {
    return stan::math::sum(stan::math::inverse(A));
}
