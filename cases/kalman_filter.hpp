#include <array>

#include "adbench.hpp"

namespace kalman {

constexpr std::size_t states = 4, observed = 2;

// Small matrices: rows × cols numbers in C order. A library's numbers may only be assigned one by one.
template <class T, std::size_t rows, std::size_t cols>
struct Small {
    std::array<T, rows * cols> entries;
    Small() = default;
    Small(const Small&) = default;
    Small& operator=(const Small& other) {
        for (std::size_t i = 0; i < rows * cols; ++i) entries[i] = other.entries[i];
        return *this;
    }
    T& operator()(std::size_t i, std::size_t j) { return entries[i * cols + j]; }
    const T& operator()(std::size_t i, std::size_t j) const { return entries[i * cols + j]; }
};

template <class T, std::size_t rows, std::size_t inner, std::size_t cols, class A, class B>
Small<T, rows, cols> product(const A& a, const B& b) {
    Small<T, rows, cols> found;
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < cols; ++j) {
            T sum = a(i, 0) * b(0, j);
            for (std::size_t k = 1; k < inner; ++k) sum += a(i, k) * b(k, j);
            found(i, j) = sum;
        }
    }
    return found;
}

// a bᵀ, with b of cols × inner.
template <class T, std::size_t rows, std::size_t inner, std::size_t cols, class A, class B>
Small<T, rows, cols> product_with_transpose(const A& a, const B& b) {
    return product<T, rows, inner, cols>(a, [&b](std::size_t i, std::size_t j) -> decltype(auto) { return b(j, i); });
}

}  // namespace kalman

template <class T, class Y, class X, class Q, class R, class O, class M>
T f(const adbench::Matrix<Y>& y, const adbench::Matrix<X>& A, const adbench::Vector<Q>& q, const adbench::Vector<R>& r,
    const adbench::Matrix<O>& H, const adbench::Vector<M>& mean) {
    using namespace kalman;
    using std::log, std::sqrt;
    Small<T, states, states> P;
    Small<T, states, 1> m;
    for (std::size_t i = 0; i < states; ++i) {
        m(i, 0) = mean[i];
        for (std::size_t j = 0; j < states; ++j) P(i, j) = i == j ? 1.0 : 0.0;
    }
    T total = 0.0;
    for (std::size_t t = 0; t < y.rows(); ++t) {
        m = product<T, states, states, 1>(A, m);
        P = product_with_transpose<T, states, states, states>(product<T, states, states, states>(A, P), A);
        for (std::size_t i = 0; i < states; ++i) P(i, i) += q[i] * q[i];
        const Small<T, observed, states> HP = product<T, observed, states, states>(H, P);
        Small<T, observed, observed> S = product_with_transpose<T, observed, states, observed>(HP, H);
        for (std::size_t i = 0; i < observed; ++i) S(i, i) += r[i] * r[i];
        const Small<T, observed, 1> seen = product<T, observed, states, 1>(H, m);
        const T a = sqrt(S(0, 0)), b = S(1, 0) / a, c = sqrt(S(1, 1) - b * b);  // S = [[a, 0], [b, c]] [[a, b], [0, c]]
        const T first = (y(t, 0) - seen(0, 0)) / a, second = (y(t, 1) - seen(1, 0) - b * first) / c;
        total -= 0.5 * (first * first + second * second) + log(a) + log(c) + std::log(2.0 * adbench::pi);
        Small<T, observed, states> V;
        for (std::size_t j = 0; j < states; ++j) {
            V(0, j) = HP(0, j) / a;
            V(1, j) = (HP(1, j) - b * V(0, j)) / c;
        }
        for (std::size_t i = 0; i < states; ++i) {
            m(i, 0) += V(0, i) * first + V(1, i) * second;
            for (std::size_t j = 0; j < states; ++j) P(i, j) -= V(0, i) * V(0, j) + V(1, i) * V(1, j);
        }
    }
    return total;
}

// One step back is the transpose of: m' = m + K e, P' = F P with F = I - K H, where dP' = F dP Fᵀ + K dR Kᵀ.
inline double gradient(const adbench::Matrix<double>& y, const adbench::Matrix<double>& A,
                       const adbench::Vector<double>& q, const adbench::Vector<double>& r,
                       const adbench::Matrix<double>& H, const adbench::Vector<double>& mean, adbench::Nothing,
                       adbench::Result<2> by_A, adbench::Result<1> by_q, adbench::Result<1> by_r, adbench::Nothing,
                       adbench::Nothing) {
    using namespace kalman;
    using State = Small<double, states, 1>;
    using Square = Small<double, states, states>;
    using Seen = Small<double, observed, observed>;
    struct Step {
        State last_m;
        Square AP, F;  // A times the last P; I - K H
        Small<double, states, observed> K;
        Seen W;  // S⁻¹
        Small<double, observed, 1> w;  // S⁻¹ e
    };
    const auto transposed = [](const auto& a) {
        return [&a](std::size_t i, std::size_t j) { return a(j, i); };
    };
    std::vector<Step> steps(y.rows());
    State m;
    Square P;
    for (std::size_t i = 0; i < states; ++i) {
        m(i, 0) = mean[i];
        for (std::size_t j = 0; j < states; ++j) P(i, j) = i == j ? 1.0 : 0.0;
    }
    double total = 0.0;
    for (std::size_t t = 0; t < y.rows(); ++t) {
        Step& s = steps[t];
        s.last_m = m;
        s.AP = product<double, states, states, states>(A, P);
        m = product<double, states, states, 1>(A, m);
        P = product_with_transpose<double, states, states, states>(s.AP, A);
        for (std::size_t i = 0; i < states; ++i) P(i, i) += q[i] * q[i];
        const auto PH = product_with_transpose<double, states, states, observed>(P, H);
        Seen S = product<double, observed, states, observed>(H, PH);
        for (std::size_t i = 0; i < observed; ++i) S(i, i) += r[i] * r[i];
        const double determinant = S(0, 0) * S(1, 1) - S(0, 1) * S(1, 0);
        s.W.entries = {S(1, 1) / determinant, -S(0, 1) / determinant, -S(1, 0) / determinant, S(0, 0) / determinant};
        Small<double, observed, 1> e = product<double, observed, states, 1>(H, m);
        for (std::size_t i = 0; i < observed; ++i) e(i, 0) = y(t, i) - e(i, 0);
        s.w = product<double, observed, observed, 1>(s.W, e);
        total -= 0.5 * (e(0, 0) * s.w(0, 0) + e(1, 0) * s.w(1, 0) + std::log(determinant)) + std::log(2 * adbench::pi);
        s.K = product<double, states, observed, observed>(PH, s.W);
        s.F = product<double, states, observed, states>(s.K, H);
        for (std::size_t i = 0; i < states; ++i) {
            for (std::size_t j = 0; j < states; ++j) s.F(i, j) = (i == j ? 1.0 : 0.0) - s.F(i, j);
        }
        m = product<double, states, states, 1>(s.F, m);  // m + K (y - H m)
        for (std::size_t i = 0; i < states; ++i) m(i, 0) += s.K(i, 0) * y(t, 0) + s.K(i, 1) * y(t, 1);
        P = product<double, states, states, states>(s.F, P);
    }
    std::fill(by_A.begin(), by_A.end(), 0.0);
    std::fill(by_q.begin(), by_q.end(), 0.0);
    std::fill(by_r.begin(), by_r.end(), 0.0);
    State by_m{};
    Square by_P{};
    for (std::size_t t = steps.size(); t-- > 0;) {
        const Step& s = steps[t];
        const auto PK = product<double, states, states, observed>(by_P, s.K);
        const auto KPK = product<double, observed, states, observed>(transposed(s.K), PK);
        const auto Km = product<double, observed, states, 1>(transposed(s.K), by_m);
        Seen by_S;  // of the log density
        for (std::size_t i = 0; i < observed; ++i) {
            for (std::size_t j = 0; j < observed; ++j) by_S(i, j) = 0.5 * (s.w(i, 0) * s.w(j, 0) - s.W(i, j));
            by_r[i] += 2.0 * r[i] * (by_S(i, i) + KPK(i, i) - Km(i, 0) * s.w(i, 0));
        }
        const auto Fm = product<double, states, states, 1>(transposed(s.F), by_m);
        const auto Hw = product<double, states, observed, 1>(transposed(H), s.w);
        const auto SH = product<double, observed, observed, states>(by_S, H);
        const auto HSH = product<double, states, observed, states>(transposed(H), SH);
        const auto PF = product<double, states, states, states>(by_P, s.F);
        by_P = product<double, states, states, states>(transposed(s.F), PF);
        for (std::size_t i = 0; i < states; ++i) {
            by_m(i, 0) = Fm(i, 0) + Hw(i, 0);
            for (std::size_t j = 0; j < states; ++j) {
                by_P(i, j) += HSH(i, j) + 0.5 * (Fm(i, 0) * Hw(j, 0) + Hw(i, 0) * Fm(j, 0));
            }
            by_q[i] += 2.0 * q[i] * by_P(i, i);
        }
        const auto PAP = product<double, states, states, states>(by_P, s.AP);
        for (std::size_t i = 0; i < states; ++i) {
            for (std::size_t j = 0; j < states; ++j) by_A(i, j) += by_m(i, 0) * s.last_m(j, 0) + 2.0 * PAP(i, j);
        }
        const auto PA = product<double, states, states, states>(by_P, A);
        by_P = product<double, states, states, states>(transposed(A), PA);
        by_m = product<double, states, states, 1>(transposed(A), by_m);
    }
    return total;
}
