// Adept 2, as its user guide's example: record, sweep back or along. It has no second order.
#pragma once

#include <adept.h>

#include <vector>

template <class F>
struct Library {
    const F& f;
    adept::Stack stack{false};  // a thread has one active stack at a time: this one is during a call

    explicit Library(const F& function) : f(function) {}

    double gradient(const double* at, double w, double* g) {
        const Active active(stack);
        std::vector<adept::adouble> x(at, at + f.size());
        stack.new_recording();
        adept::adouble y = f(x.data());
        y.set_gradient(w);
        stack.compute_adjoint();
        for (std::size_t i = 0; i < x.size(); ++i) g[i] = x[i].get_gradient();
        return y.value();
    }

    double jvp(const double* at, const double* v) {
        const Active active(stack);
        std::vector<adept::adouble> x(at, at + f.size());
        stack.new_recording();
        adept::adouble y = f(x.data());
        for (std::size_t i = 0; i < x.size(); ++i) x[i].set_gradient(v[i]);
        stack.compute_tangent_linear();
        return y.get_gradient();
    }

private:
    struct Active {
        adept::Stack& stack;
        explicit Active(adept::Stack& its) : stack(its) { stack.activate(); }
        ~Active() { stack.deactivate(); }
    };
};
