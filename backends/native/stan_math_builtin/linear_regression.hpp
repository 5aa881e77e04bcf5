#include <stan/math/rev/fun/as_array_or_scalar.hpp>
#include <stan/math/rev/fun/as_column_vector_or_scalar.hpp>
#include <stan/math/rev/fun/log1p.hpp>
#include <stan/math/rev/fun/value_of.hpp>
#include <stan/math/rev/functor/partials_propagator.hpp>
#include <stan/math/prim/prob/normal_id_glm_lpdf.hpp>
#include <stan/math/prim/prob/normal_lpdf.hpp>

template <class T, class X, class Y, class W, class B, class S>
T f(const X& x, const Y& y, const W& w, const B& b, const S& sigma) {
    using stan::math::log1p, stan::math::normal_id_glm_lpdf, stan::math::normal_lpdf;
    return normal_id_glm_lpdf<false>(y, x, b, w, sigma) + normal_lpdf<false>(w, 0.0, 1.0) - 0.5 * b * b -
           log1p(sigma * sigma);
}
