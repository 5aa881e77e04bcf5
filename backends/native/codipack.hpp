// CoDiPack 2 and 3 as in its tutorials: RealReverse, the default (Jacobian tape with linear indices); RealForward along
// a direction; reverse over forward for second order. Not reset(): before 2.3 it always clears at least two million
// adjoints.
#pragma once

#include <codi.hpp>

#include <vector>

template <class F>
struct Library {
    const F& f;

    explicit Library(const F& function) : f(function) {}

    double gradient(const double* at, double w, double* g) {
        using Real = codi::RealReverse;
        const Recording<Real> recording;
        std::vector<Real> x(at, at + f.size());
        const Real y = recording.swept(f, x, w);
        for (std::size_t i = 0; i < x.size(); ++i) g[i] = x[i].getGradient();
        return y.getValue();
    }

    double jvp(const double* at, const double* v) {
        std::vector<codi::RealForward> x(at, at + f.size());
        for (std::size_t i = 0; i < x.size(); ++i) x[i].setGradient(v[i]);
        return f(x.data()).getGradient();
    }

    void hvp(const double* at, const double* v, double* h) {
        using Tangent = codi::RealForward;
        using Real = codi::RealReverseGen<Tangent>;
        const Recording<Real> recording;
        std::vector<Real> x;
        for (std::size_t i = 0; i < f.size(); ++i) {
            Tangent along = at[i];
            along.setGradient(v[i]);
            x.emplace_back(along);
        }
        recording.swept(f, x, Tangent(1.0));
        for (std::size_t i = 0; i < x.size(); ++i) h[i] = x[i].getGradient().getGradient();
    }

private:
    template <class Real>
    struct Recording {
        typename Real::Tape& tape = Real::getTape();
        ~Recording() {
            tape.setPassive();
            tape.resetTo(tape.getZeroPosition());
        }
        template <class Seed>
        Real swept(const F& f, std::vector<Real>& x, const Seed& seed) const {
            tape.setActive();
            for (Real& input : x) tape.registerInput(input);
            Real y = f(x.data());
            tape.registerOutput(y);
            tape.setPassive();
            y.setGradient(seed);
            tape.evaluate();
            return y;
        }
    };
};
