#include <stan/math/prim/fun/mdivide_left.hpp>
#include <stan/math/rev/fun/mdivide_left.hpp>
#include <stan/math/rev/fun/sum.hpp>

template <class T, class X, class Y>
T f(const X& A, const Y& b) {
    return stan::math::sum(stan::math::mdivide_left(A, b));
}
