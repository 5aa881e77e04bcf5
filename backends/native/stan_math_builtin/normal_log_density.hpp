#include <stan/math/rev/fun/as_array_or_scalar.hpp>
#include <stan/math/rev/fun/as_column_vector_or_scalar.hpp>
#include <stan/math/rev/fun/value_of.hpp>
#include <stan/math/rev/functor/partials_propagator.hpp>
#include <stan/math/prim/prob/normal_lpdf.hpp>

template <class T, class Y, class M, class S>
T f(const Y& y, const M& mu, const S& sigma) {
    return stan::math::normal_lpdf<false>(y, mu, sigma);
}
