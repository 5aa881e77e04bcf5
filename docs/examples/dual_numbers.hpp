// Dual numbers: a value and its derivative along one direction. Forward mode, one pass for each entry of a gradient.
#pragma once

#include <cmath>
#include <vector>

struct Dual {
    double v, d;
    Dual(double value = 0.0, double slope = 0.0) : v(value), d(slope) {}
    Dual& operator+=(const Dual& b) { return *this = {v + b.v, d + b.d}; }
    Dual& operator-=(const Dual& b) { return *this = {v - b.v, d - b.d}; }
    Dual& operator*=(const Dual& b) { return *this = {v * b.v, d * b.v + v * b.d}; }
    Dual& operator/=(const Dual& b) { return *this = {v / b.v, (d - v / b.v * b.d) / b.v}; }
    friend Dual operator+(Dual a, const Dual& b) { return a += b; }
    friend Dual operator-(Dual a, const Dual& b) { return a -= b; }
    friend Dual operator*(Dual a, const Dual& b) { return a *= b; }
    friend Dual operator/(Dual a, const Dual& b) { return a /= b; }
    friend Dual operator-(const Dual& a) { return {-a.v, -a.d}; }
    friend bool operator<(const Dual& a, const Dual& b) { return a.v < b.v; }
    friend bool operator>=(const Dual& a, const Dual& b) { return a.v >= b.v; }
    friend Dual exp(const Dual& a) { return {std::exp(a.v), std::exp(a.v) * a.d}; }
    friend Dual log(const Dual& a) { return {std::log(a.v), a.d / a.v}; }
};

template <class F>
struct Library {
    const F& f;
    std::vector<Dual> x;

    explicit Library(const F& function) : f(function), x(f.size()) {}

    double jvp(const double* at, const double* v) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = {at[i], v[i]};
        return f(x.data()).d;
    }

    double gradient(const double* at, double w, double* g) {
        std::vector<double> unit(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            unit[i] = 1.0;
            g[i] = w * jvp(at, unit.data());
            unit[i] = 0.0;
        }
        x.assign(at, at + x.size());
        return f(x.data()).v;
    }
};
