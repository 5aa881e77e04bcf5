#include <stan/math/prim/fun/add.hpp>
#include <stan/math/prim/fun/transpose.hpp>
#include <stan/math/rev/fun/cholesky_decompose.hpp>
#include <stan/math/rev/fun/multiply.hpp>
#include <stan/math/rev/fun/sum.hpp>

template <class T, class X>
T f(const X& A) {
    using stan::math::add, stan::math::cholesky_decompose, stan::math::multiply, stan::math::sum;
    return sum(cholesky_decompose(multiply(0.5, add(A, stan::math::transpose(A)))));
}
