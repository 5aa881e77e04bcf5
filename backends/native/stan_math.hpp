// Stan Math as in its functionals (stan::math::gradient, hessian_times_vector, hessian): record in a nested scope,
// sweep, free the memory. Forward over reverse for second order.
#pragma once

// <stan/math/mix.hpp> takes half a minute to compile; scalar functions need these headers only.
#include <stan/math/mix/meta.hpp>

#include <stan/math/fwd/core.hpp>
#include <stan/math/rev/core.hpp>

#include <stan/math/fwd/fun/acos.hpp>
#include <stan/math/fwd/fun/acosh.hpp>
#include <stan/math/fwd/fun/asin.hpp>
#include <stan/math/fwd/fun/asinh.hpp>
#include <stan/math/fwd/fun/atan.hpp>
#include <stan/math/fwd/fun/atan2.hpp>
#include <stan/math/fwd/fun/atanh.hpp>
#include <stan/math/fwd/fun/cbrt.hpp>
#include <stan/math/fwd/fun/cos.hpp>
#include <stan/math/fwd/fun/cosh.hpp>
#include <stan/math/fwd/fun/erf.hpp>
#include <stan/math/fwd/fun/erfc.hpp>
#include <stan/math/fwd/fun/exp.hpp>
#include <stan/math/fwd/fun/exp2.hpp>
#include <stan/math/fwd/fun/expm1.hpp>
#include <stan/math/fwd/fun/fabs.hpp>
#include <stan/math/fwd/fun/fmax.hpp>
#include <stan/math/fwd/fun/fmin.hpp>
#include <stan/math/fwd/fun/hypot.hpp>
#include <stan/math/fwd/fun/lgamma.hpp>
#include <stan/math/fwd/fun/log.hpp>
#include <stan/math/fwd/fun/log10.hpp>
#include <stan/math/fwd/fun/log1p.hpp>
#include <stan/math/fwd/fun/log2.hpp>
#include <stan/math/fwd/fun/pow.hpp>
#include <stan/math/fwd/fun/sin.hpp>
#include <stan/math/fwd/fun/sinh.hpp>
#include <stan/math/fwd/fun/sqrt.hpp>
#include <stan/math/fwd/fun/tan.hpp>
#include <stan/math/fwd/fun/tanh.hpp>
#include <stan/math/fwd/fun/tgamma.hpp>

#include <stan/math/rev/fun/acos.hpp>
#include <stan/math/rev/fun/acosh.hpp>
#include <stan/math/rev/fun/asin.hpp>
#include <stan/math/rev/fun/asinh.hpp>
#include <stan/math/rev/fun/atan.hpp>
#include <stan/math/rev/fun/atan2.hpp>
#include <stan/math/rev/fun/atanh.hpp>
#include <stan/math/rev/fun/cbrt.hpp>
#include <stan/math/rev/fun/cos.hpp>
#include <stan/math/rev/fun/cosh.hpp>
#include <stan/math/prim/fun/divide.hpp>
#include <stan/math/rev/fun/erf.hpp>
#include <stan/math/rev/fun/erfc.hpp>
#include <stan/math/rev/fun/exp.hpp>
#include <stan/math/rev/fun/exp2.hpp>
#include <stan/math/rev/fun/expm1.hpp>
#include <stan/math/rev/fun/fabs.hpp>
#include <stan/math/rev/fun/fmax.hpp>
#include <stan/math/rev/fun/fmin.hpp>
#include <stan/math/rev/fun/hypot.hpp>
#include <stan/math/rev/fun/lgamma.hpp>
#include <stan/math/rev/fun/log.hpp>
#include <stan/math/rev/fun/log10.hpp>
#include <stan/math/rev/fun/log1p.hpp>
#include <stan/math/rev/fun/log2.hpp>
#include <stan/math/rev/fun/pow.hpp>
#include <stan/math/rev/fun/sin.hpp>
#include <stan/math/rev/fun/sinh.hpp>
#include <stan/math/rev/fun/sqrt.hpp>
#include <stan/math/rev/fun/tan.hpp>
#include <stan/math/rev/fun/tanh.hpp>
#include <stan/math/rev/fun/tgamma.hpp>

#include <vector>

template <class F>
struct Library {
    using var = stan::math::var;
    template <class X>
    using fvar = stan::math::fvar<X>;

    const F& f;
    std::vector<var> x;
    std::vector<fvar<double>> x_and_v;
    std::vector<fvar<var>> mixed;

    explicit Library(const F& function) : f(function) {}

    double gradient(const double* at, double w, double* g) {
        const stan::math::nested_rev_autodiff scope;
        x.assign(at, at + f.size());
        const var y = f(x.data());
        y.adj() = w;
        stan::math::grad();
        for (std::size_t i = 0; i < x.size(); ++i) g[i] = x[i].adj();
        return y.val();
    }

    double jvp(const double* at, const double* v) {
        x_and_v.resize(f.size());
        for (std::size_t i = 0; i < x_and_v.size(); ++i) x_and_v[i] = {at[i], v[i]};
        return f(x_and_v.data()).d_;
    }

    void hvp(const double* at, const double* v, double* h) {
        const stan::math::nested_rev_autodiff scope;
        mixed.resize(f.size());
        for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = {at[i], v[i]};
        const fvar<var> y = f(mixed.data());
        stan::math::grad(y.d_.vi_);
        for (std::size_t i = 0; i < mixed.size(); ++i) h[i] = mixed[i].val_.adj();
    }

    void hessian(const double* at, double* h) {
        std::vector<double> unit(f.size());
        for (std::size_t i = 0; i < unit.size(); ++i) {
            unit[i] = 1.0;
            hvp(at, unit.data(), h + i * unit.size());
            unit[i] = 0.0;
        }
    }
};
