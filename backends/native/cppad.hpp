// CppAD. Variants: 0 records at every call; 1 records once, and again when a constant or a comparison's outcome
// changes; 2 also optimises the recording.
#pragma once

#include <cppad/cppad.hpp>

#include <memory>

using Number = CppAD::AD<double>;
template <class X>
using Row = CppAD::vector<X>;  // from CppAD's pool, which keeps freed memory for the next recording

// The part that does not depend on the function, compiled once.
struct Recording {
    Recording();
    ~Recording();
    void record(Row<Number>& ax, Row<Number>& ay, bool optimise);
    bool evaluate(const Row<double>& x, double& y);  // whether all comparisons came out as recorded
    void sweep(int order, double w, double* out);
    double along(const double* v);
    void hessian(const Row<double>& x, double* out);

private:
    struct Tape;
    std::unique_ptr<Tape> tape_;
};

template <class F>
struct Library {
    const F& f;
    int variant;
    Row<Number> ax, ay{1};
    Row<double> x;
    std::vector<double> constants;
    Recording recording;
    bool recorded = false;

    Library(const F& function, int way) : f(function), variant(way), ax(f.size()), x(f.size()) {}

    double gradient(const double* at, double w, double* g) {
        const double y = forward(at);
        recording.sweep(1, w, g);
        return y;
    }
    double jvp(const double* at, const double* v) {
        forward(at);
        return recording.along(v);
    }
    void hvp(const double* at, const double* v, double* h) {
        jvp(at, v);
        recording.sweep(2, 1.0, h);
    }
    void hessian(const double* at, double* h) {
        forward(at);
        recording.hessian(x, h);
    }

private:
    // The value; makes the recording ready for a sweep at this point.
    double forward(const double* at) {
        std::copy(at, at + f.size(), x.begin());
        double y;
        if (variant != 0 && !f.constants_changed(constants) && recorded && recording.evaluate(x, y)) return y;
        recorded = false;
        std::copy(at, at + f.size(), ax.begin());
        CppAD::Independent(ax);
        try {
            ay[0] = f(ax.data());
        } catch (...) {
            Number::abort_recording();
            throw;
        }
        recording.record(ax, ay, variant == 2);
        recorded = true;
        recording.evaluate(x, y);
        return y;
    }
};

#ifdef ADBENCH_COMMON
struct Recording::Tape : CppAD::ADFun<double> {
    Row<double> v, w{1}, y, g;
};

Recording::Recording() : tape_(std::make_unique<Tape>()) {
    CppAD::thread_alloc::hold_memory(true);
    tape_->check_for_nan(false);
}

Recording::~Recording() = default;

void Recording::record(Row<Number>& ax, Row<Number>& ay, bool optimise) {
    tape_->Dependent(ax, ay);
    if (optimise) tape_->optimize();
    tape_->v.resize(ax.size());
}

bool Recording::evaluate(const Row<double>& x, double& y) {
    tape_->y = tape_->Forward(0, x);
    y = tape_->y[0];
    return tape_->compare_change_number() == 0;
}

void Recording::sweep(int order, double w, double* out) {
    tape_->w[0] = w;
    tape_->g = tape_->Reverse(order, tape_->w);
    // The last coefficient of each input belongs to x.
    for (std::size_t i = 0; i < tape_->v.size(); ++i) out[i] = tape_->g[order * i + order - 1];
}

double Recording::along(const double* v) {
    std::copy(v, v + tape_->v.size(), tape_->v.begin());
    return tape_->Forward(1, tape_->v)[0];
}

void Recording::hessian(const Row<double>& x, double* out) {
    tape_->g = tape_->Hessian(x, 0);
    std::copy(tape_->g.begin(), tape_->g.end(), out);
}
#endif
