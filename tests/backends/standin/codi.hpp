// A stand-in for CoDiPack 2 with the names from its tutorials that backends/native/codipack.hpp calls. It tests the
// adaptor's use of these names, not CoDiPack.
#pragma once

#include "tape.hpp"

namespace codi {

struct NoTape {
    template <class Value>
    static standin::Tape<Value>* tape() {
        return nullptr;
    }
};

// Value and tangent.
struct RealForward {
    using is_number = void;
    double v = 0.0, d = 0.0;

    RealForward() = default;
    RealForward(double x) : v(x) {}
    RealForward(double x, double dx) : v(x), d(dx) {}
    void setGradient(double g) { d = g; }
    double getGradient() const { return d; }
    double getValue() const { return v; }

    friend RealForward operator+(const RealForward& a, const RealForward& b) { return {a.v + b.v, a.d + b.d}; }
    friend RealForward operator-(const RealForward& a, const RealForward& b) { return {a.v - b.v, a.d - b.d}; }
    friend RealForward operator*(const RealForward& a, const RealForward& b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
    friend RealForward operator/(const RealForward& a, const RealForward& b) {
        return {a.v / b.v, (a.d - a.v / b.v * b.d) / b.v};
    }
    friend RealForward operator-(const RealForward& a) { return {-a.v, -a.d}; }
    RealForward& operator+=(const RealForward& b) { return *this = *this + b; }
    RealForward& operator-=(const RealForward& b) { return *this = *this - b; }
    RealForward& operator*=(const RealForward& b) { return *this = *this * b; }
    RealForward& operator/=(const RealForward& b) { return *this = *this / b; }
    friend bool operator<(const RealForward& a, const RealForward& b) { return a.v < b.v; }
    friend bool operator>=(const RealForward& a, const RealForward& b) { return a.v >= b.v; }
    friend RealForward exp(const RealForward& a) { return {std::exp(a.v), std::exp(a.v) * a.d}; }
    friend RealForward log(const RealForward& a) { return {std::log(a.v), a.d / a.v}; }
};

template <class Value>
struct RecordingTape : standin::Tape<Value> {
    bool is_active = false;
    void setActive() { is_active = true; }
    void setPassive() { is_active = false; }
    template <class Real>
    void registerInput(Real& x) {
        x.at = this->place();
    }
    template <class Real>
    void registerOutput(Real&) {}
    void evaluate() { this->sweep_back(); }
    struct Position {};
    Position getZeroPosition() const { return {}; }
    void resetTo(const Position&) {
        this->statements.clear();
        this->gradients.assign(1, Value(0.0));
    }
};

template <class Value>
RecordingTape<Value>& the_tape() {
    static RecordingTape<Value> tape;
    return tape;
}

struct WhileActive {
    template <class Value>
    static standin::Tape<Value>* tape() {
        return the_tape<Value>().is_active ? &the_tape<Value>() : nullptr;
    }
};

template <class Value>
struct RealReverseGen : standin::Number<Value, WhileActive> {
    using Base = standin::Number<Value, WhileActive>;
    using Tape = RecordingTape<Value>;
    using Base::Base;
    RealReverseGen() = default;
    RealReverseGen(const Base& x) : Base(x) {}
    static Tape& getTape() { return the_tape<Value>(); }
    void setGradient(const Value& g) { getTape().gradients[this->at] = g; }
    Value getGradient() const { return getTape().gradients[this->at]; }
    Value getValue() const { return this->v; }
};

using RealReverse = RealReverseGen<double>;

}  // namespace codi
