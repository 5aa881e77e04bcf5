#include <stan/math/prim/fun/log_determinant.hpp>
#include <stan/math/rev/fun/log_determinant.hpp>

template <class T, class X>
T f(const X& A) {
    return stan::math::log_determinant(A);
}
