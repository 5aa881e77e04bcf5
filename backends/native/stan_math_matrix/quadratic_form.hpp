#include <stan/math/rev/fun/quad_form.hpp>

template <class T, class X, class Y>
T f(const X& x, const Y& A) {
    return stan::math::quad_form(A, x);
}
