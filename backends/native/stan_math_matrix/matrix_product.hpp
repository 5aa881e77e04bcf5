#include <stan/math/rev/fun/multiply.hpp>
#include <stan/math/rev/fun/sum.hpp>

template <class T, class X, class Y>
T f(const X& A, const Y& B) {
    return stan::math::sum(stan::math::multiply(A, B));
}
