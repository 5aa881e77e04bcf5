// A small tape for the stand-ins adept.h and codi.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace standin {

template <class Value>
struct Tape {
    struct Statement {
        std::size_t result;
        std::vector<std::pair<Value, std::size_t>> terms;
    };
    std::vector<Statement> statements;
    std::vector<Value> gradients{Value(0.0)};  // place 0: everything that is not a variable

    std::size_t place() {
        gradients.push_back(Value(0.0));
        return gradients.size() - 1;
    }
    void sweep_back() {
        for (auto s = statements.rbegin(); s != statements.rend(); ++s) {
            const Value g = gradients[s->result];
            gradients[s->result] = Value(0.0);
            for (const auto& [slope, at] : s->terms) gradients[at] = gradients[at] + slope * g;
        }
    }
    void sweep_along() {
        for (const Statement& s : statements) {
            Value g(0.0);
            for (const auto& [slope, at] : s.terms) g = g + slope * gradients[at];
            gradients[s.result] = g;
        }
    }
};

// Tag distinguishes the types of two libraries. The tape is Tag::template tape<Value>(), null if recording is off.
template <class Value, class Tag>
struct Number {
    Value v{};
    std::size_t at = 0;

    Number() = default;
    Number(double x) : v(x) {}
    template <class X, class = decltype(Value(std::declval<X>())), class = typename X::is_number>
    Number(const X& x) : v(x) {}
    Number(const Number& other) { *this = other; }
    Number& operator=(const Number& other) {
        v = other.v;
        at = other.at;
        return *this;
    }

    static Number of(const Value& v, std::vector<std::pair<Value, std::size_t>> terms) {
        Number made;
        made.v = v;
        Tape<Value>* tape = Tag::template tape<Value>();
        if (tape == nullptr) return made;
        made.at = tape->place();
        tape->statements.push_back({made.at, std::move(terms)});
        return made;
    }

    friend Number operator+(const Number& a, const Number& b) { return of(a.v + b.v, {{Value(1.0), a.at}, {Value(1.0), b.at}}); }
    friend Number operator-(const Number& a, const Number& b) { return of(a.v - b.v, {{Value(1.0), a.at}, {Value(-1.0), b.at}}); }
    friend Number operator*(const Number& a, const Number& b) { return of(a.v * b.v, {{b.v, a.at}, {a.v, b.at}}); }
    friend Number operator/(const Number& a, const Number& b) {
        return of(a.v / b.v, {{Value(1.0) / b.v, a.at}, {Value(-1.0) * a.v / (b.v * b.v), b.at}});
    }
    friend Number operator-(const Number& a) { return of(Value(-1.0) * a.v, {{Value(-1.0), a.at}}); }
    Number& operator+=(const Number& b) { return *this = *this + b; }
    Number& operator-=(const Number& b) { return *this = *this - b; }
    Number& operator*=(const Number& b) { return *this = *this * b; }
    Number& operator/=(const Number& b) { return *this = *this / b; }
    friend bool operator<(const Number& a, const Number& b) { return a.v < b.v; }
    friend bool operator>=(const Number& a, const Number& b) { return !(a.v < b.v); }
    friend Number exp(const Number& a) {
        using std::exp;
        const Value y = exp(a.v);
        return of(y, {{y, a.at}});
    }
    friend Number log(const Number& a) {
        using std::log;
        return of(log(a.v), {{Value(1.0) / a.v, a.at}});
    }
};

}  // namespace standin
