// A stand-in for Adept 2 with the names from its user guide that backends/native/adept.hpp calls. It tests the adaptor's
// use of these names, not Adept.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "tape.hpp"

namespace adept {

class Stack : public standin::Tape<double> {
public:
    explicit Stack(bool activate_immediately = true) {
        if (activate_immediately) activate();
    }
    void activate() {
        if (active() != nullptr) throw std::logic_error("a stack is already active");
        active() = this;
    }
    void deactivate() { active() = nullptr; }
    void new_recording() {
        statements.clear();
        std::fill(gradients.begin(), gradients.end(), 0.0);
    }
    void compute_adjoint() { sweep_back(); }
    void compute_tangent_linear() { sweep_along(); }
    static Stack*& active() {
        static Stack* stack = nullptr;
        return stack;
    }
};

struct Tag {
    template <class>
    static standin::Tape<double>* tape() {
        return Stack::active();
    }
};

struct adouble : standin::Number<double, Tag> {
    using Base = standin::Number<double, Tag>;
    adouble() : adouble(0.0) {}
    adouble(double x) : Base(x) { at = Stack::active()->place(); }
    adouble(const Base& x) : Base(x) {}
    double value() const { return v; }
    void set_value(double x) { v = x; }
    void set_gradient(double g) const { Stack::active()->gradients[at] = g; }
    double get_gradient() const { return Stack::active()->gradients[at]; }
};

using Index = int;
inline void set_values(adouble* a, Index n, const double* values) {
    for (Index i = 0; i < n; ++i) a[i].set_value(values[i]);
}
inline void set_gradients(adouble* a, Index n, const double* gradients) {
    for (Index i = 0; i < n; ++i) a[i].set_gradient(gradients[i]);
}
inline void get_gradients(const adouble* a, Index n, double* gradients) {
    for (Index i = 0; i < n; ++i) gradients[i] = a[i].get_gradient();
}

}  // namespace adept
