// Adept 2 as in its user guide: keep stack and inputs, record, sweep back or forwards. First order only.
#pragma once

#include <adept.h>

#include <vector>

template <class F>
struct Library {
    const F& f;
    adept::Stack stack{false};  // active during a call only: a thread has one active stack
    std::vector<adept::adouble> x;

    explicit Library(const F& function) : f(function) {
        const Active active(stack);
        x.resize(f.size());
    }
    ~Library() {
        const Active active(stack);  // numbers must be destroyed while their own stack is active
        x.clear();
    }

    double gradient(const double* at, double w, double* g) {
        const Active active(stack);
        const adept::adouble y = recorded(at);
        y.set_gradient(w);
        stack.compute_adjoint();
        adept::get_gradients(x.data(), size(), g);
        return y.value();
    }

    double jvp(const double* at, const double* v) {
        const Active active(stack);
        const adept::adouble y = recorded(at);
        adept::set_gradients(x.data(), size(), v);
        stack.compute_tangent_linear();
        return y.get_gradient();
    }

private:
    struct Active {
        adept::Stack& stack;
        explicit Active(adept::Stack& its) : stack(its) { stack.activate(); }
        ~Active() { stack.deactivate(); }
    };

    adept::Index size() const { return static_cast<adept::Index>(x.size()); }
    adept::adouble recorded(const double* at) {
        adept::set_values(x.data(), size(), at);
        stack.new_recording();
        return f(x.data());
    }
};
