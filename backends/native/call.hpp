// An operator of a library on a case's function, bound to inputs; exports.hpp hands these out.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "function.hpp"

namespace adbench {

enum Operator { value = 0, gradient = 1, vjp = 2, jvp = 3, hvp = 4, hessian = 5, batch_gradient = 6 };

// One prepared call: leaves, vector and results are bound once; `run` is timed.
struct Call {
    std::vector<Leaf> leaves;
    int asked = value;
    const double* const* vector = nullptr;  // of jvp and hvp: an array for each active leaf; of vjp: the number w;
                                            // of batch_gradient: the number of points
    double* out = nullptr;                  // n numbers, n² for the hessian, n for each point
    std::string error;
    bool unsupported = false;

    virtual ~Call() = default;
    virtual bool has(int which) const = 0;
    virtual double run() = 0;
};

template <class L>
using Value = decltype(std::declval<L&>().value(nullptr));
template <class L>
using Gradient = decltype(std::declval<L&>().gradient(nullptr, 1.0, nullptr));
template <class L>
using Jvp = decltype(std::declval<L&>().jvp(nullptr, nullptr));
template <class L>
using Hvp = decltype(std::declval<L&>().hvp(nullptr, nullptr, nullptr));
template <class L>
using Hessian = decltype(std::declval<L&>().hessian(nullptr, nullptr));
template <template <class> class Operation, class L, class = void>
constexpr bool offers = false;
template <template <class> class Operation, class L>
constexpr bool offers<Operation, L, std::void_t<Operation<L>>> = true;

// `every` compiles all operators of the library; otherwise only value and gradient, which compile faster.
template <template <class> class Library, class F, bool every>
class CallOf final : public Call {
    using L = Library<F>;
    template <template <class> class Operation>
    static constexpr bool compiled = every && offers<Operation, L>;

public:
    CallOf(std::vector<Leaf> given, int variant) {
        leaves = std::move(given);
        f_ = std::make_unique<F>(leaves);
        if constexpr (std::is_constructible_v<L, const F&, int>) {
            library_ = std::make_unique<L>(*f_, variant);
        } else {
            library_ = std::make_unique<L>(*f_);
        }
        x_.resize(f_->size());
        v_.resize(f_->size());
    }

    bool has(int which) const override {
        switch (which) {
            case value: return true;
            case gradient:
            case batch_gradient:
            case vjp: return offers<Gradient, L>;
            case jvp: return compiled<Jvp>;
            case hvp: return compiled<Hvp>;
            case hessian: return compiled<Hessian>;
            default: return false;
        }
    }

    double run() override {
        switch (asked) {
            case value:
                if constexpr (offers<Value, L>) {
                    return library_->value(x());
                } else {
                    return f_->template at<double>(InPlace{});
                }
            case gradient:
                if constexpr (offers<Gradient, L>) return library_->gradient(x(), 1.0, out);
                break;
            case batch_gradient:
                if constexpr (offers<Gradient, L>) return at_points(static_cast<std::size_t>(*vector[0])), 0.0;
                break;
            case vjp:
                if constexpr (offers<Gradient, L>) return library_->gradient(x(), *vector[0], out);
                break;
            case jvp:
                if constexpr (compiled<Jvp>) return library_->jvp(x(), v());
                break;
            case hvp:
                if constexpr (compiled<Hvp>) return library_->hvp(x(), v(), out), 0.0;
                break;
            case hessian:
                if constexpr (compiled<Hessian>) return library_->hessian(x(), out), 0.0;
                break;
        }
        throw Unsupported("the library lacks this operator");
    }

private:
    // The gradient at each point. The active leaves have the points one after the other.
    void at_points(std::size_t count) {
        std::vector<const double*> first;
        for (const std::size_t k : f_->active()) first.push_back(static_cast<const double*>(leaves[k].data));
        const auto go_to = [&](std::size_t point) {
            std::size_t next = 0;
            for (const std::size_t k : f_->active()) leaves[k].data = first[next++] + point * leaves[k].size;
        };
        try {
            for (std::size_t point = 0; point < count; ++point) {
                go_to(point);
                library_->gradient(x(), 1.0, out + point * f_->size());
            }
        } catch (...) {
            go_to(0);
            throw;
        }
        go_to(0);
    }

    const double* x() {
        return in_a_row(x_, [this](std::size_t k) { return leaves[f_->active()[k]].data; });
    }
    const double* v() {
        return in_a_row(v_, [this](std::size_t k) { return static_cast<const void*>(vector[k]); });
    }

    // The active leaves in one row; a single leaf is not copied.
    template <class Address>
    const double* in_a_row(std::vector<double>& row, Address address) {
        const auto& active = f_->active();
        if (active.size() == 1) return static_cast<const double*>(address(0));
        double* next = row.data();
        for (std::size_t k = 0; k < active.size(); ++k) {
            const std::size_t size = leaves[active[k]].size;
            if (size != 0) std::memcpy(next, address(k), size * sizeof(double));
            next += size;
        }
        return row.data();
    }

    std::unique_ptr<F> f_;
    std::unique_ptr<L> library_;
    std::vector<double> x_, v_;
};

}  // namespace adbench
