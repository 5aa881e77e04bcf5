// Sacado: reverse mode by Rad, forward mode by Fad, second order by Rad over Fad.
#pragma once

// Debian builds Sacado with optional parts of Trilinos (Teuchos, Kokkos, MPI) on which its package does not depend.
// The number types need none of them.
#include <Sacado_ConfigDefs.h>
#undef HAVE_SACADO_TEUCHOSCORE
#undef HAVE_SACADO_TEUCHOSCOMM
#undef HAVE_SACADO_TEUCHOSNUMERICS
#undef HAVE_SACADO_TEUCHOSKOKKOSCOMM
#undef HAVE_SACADO_KOKKOSCORE
#undef HAVE_SACADO_KOKKOSCONTAINERS
#undef HAVE_SACADO_VIEW_SPEC
#include <Sacado_Fad_SFad.hpp>

// Rad calls std::log and others on its inner numbers, which may be Fad's.
#include <cmath>
namespace std {
using Sacado::Fad::Exp::acos, Sacado::Fad::Exp::acosh, Sacado::Fad::Exp::asin, Sacado::Fad::Exp::asinh;
using Sacado::Fad::Exp::atan, Sacado::Fad::Exp::atan2, Sacado::Fad::Exp::atanh, Sacado::Fad::Exp::cbrt;
using Sacado::Fad::Exp::cos, Sacado::Fad::Exp::cosh, Sacado::Fad::Exp::exp, Sacado::Fad::Exp::fabs;
using Sacado::Fad::Exp::log, Sacado::Fad::Exp::log10, Sacado::Fad::Exp::pow, Sacado::Fad::Exp::sin;
using Sacado::Fad::Exp::sinh, Sacado::Fad::Exp::sqrt, Sacado::Fad::Exp::tan, Sacado::Fad::Exp::tanh;
}  // namespace std
#include <Sacado_trad.hpp>

#include <vector>

template <class F>
struct Library {
    using Tangent = Sacado::Fad::SFad<double, 1>;
    template <class X>
    using Adjoint = Sacado::Rad::ADvar<X>;

    const F& f;
    std::vector<Adjoint<double>> x;
    std::vector<Adjoint<Tangent>> mixed;
    std::vector<Tangent> x_and_v;

    explicit Library(const F& function) : f(function) {}

    double gradient(const double* at, double w, double* g) {
        x.clear();  // independents must be created after the last sweep, which frees their memory
        for (std::size_t i = 0; i < f.size(); ++i) x.emplace_back(at[i]);
        Adjoint<double> y = f(x.data());
        Adjoint<double>* outputs = &y;
        Adjoint<double>::Weighted_Gradcomp(1, &outputs, &w);
        for (std::size_t i = 0; i < f.size(); ++i) g[i] = x[i].adj();
        return y.val();
    }

    double jvp(const double* at, const double* v) {
        x_and_v.clear();
        for (std::size_t i = 0; i < f.size(); ++i) x_and_v.push_back(along(at[i], v[i]));
        const Tangent y = f(x_and_v.data());
        return y.dx(0);
    }

    void hvp(const double* at, const double* v, double* h) {
        mixed.clear();
        for (std::size_t i = 0; i < f.size(); ++i) mixed.emplace_back(along(at[i], v[i]));
        Adjoint<Tangent> y = f(mixed.data());
        Adjoint<Tangent>* outputs = &y;
        Tangent one = 1.0;
        Adjoint<Tangent>::Weighted_Gradcomp(1, &outputs, &one);
        for (std::size_t i = 0; i < f.size(); ++i) h[i] = mixed[i].adj().dx(0);
    }

private:
    static Tangent along(double x, double v) {
        Tangent both(1, x);
        both.fastAccessDx(0) = v;
        return both;
    }
};
