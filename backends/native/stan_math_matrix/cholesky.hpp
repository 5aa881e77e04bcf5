#include <stan/math/prim/fun/add.hpp>
#include <stan/math/prim/fun/cholesky_decompose.hpp>
#include <stan/math/prim/fun/transpose.hpp>
#include <stan/math/rev/fun/cholesky_decompose.hpp>
#include <stan/math/rev/fun/multiply.hpp>
#include <stan/math/rev/fun/sum.hpp>

template <class T, class X>
T f(const X& A) {
    using stan::math::add, stan::math::cholesky_decompose, stan::math::multiply, stan::math::sum;
    if constexpr (std::is_same_v<T, double>) {
        const Eigen::MatrixXd symmetric = 0.5 * (A + A.transpose());  // Stan's cholesky needs column order
        return sum(cholesky_decompose(symmetric));
    } else {
        return sum(cholesky_decompose(multiply(0.5, add(A, stan::math::transpose(A)))));
    }
}
