#include "_elimination.hpp"

namespace arm {

constexpr double gravity = 9.8, slowness = 0.05;

// B and G(0) from the masses: B = Aᵀ diag(m) A + diag(m l² / 12), G = g Aᵀ m, A = outward · lengths.
template <class B, class M, class L, class O>
void inertia(const adbench::Vector<M>& masses, const adbench::Vector<L>& lengths, const adbench::Matrix<O>& outward,
             std::vector<B>& between, std::vector<B>& weight) {
    const std::size_t n = masses.size();
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < n; ++k) {
            const B pull = masses[k] * (outward(k, i) * lengths[i]);
            weight[i] += gravity * pull;
            for (std::size_t j = 0; j < n; ++j) between[i * n + j] += pull * (outward(k, j) * lengths[j]);
        }
        between[i * n + i] += masses[i] * (lengths[i] * lengths[i] / 12.0);
    }
}

// x ← (L U)⁻¹ x with the factors of `eliminated` without exchanges.
template <class X, class Y>
void solve(const std::vector<X>& rows, std::size_t n, Y* x) {
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) x[i] -= rows[i * n + j] * x[j];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t j = i + 1; j < n; ++j) x[i] -= rows[i * n + j] * x[j];
        x[i] /= rows[i * n + i];
    }
}

}  // namespace arm

template <class T, class U, class P, class V, class M, class L, class O, class G, class D>
T f(const adbench::Vector<U>& torques, const adbench::Vector<P>& angles, const adbench::Vector<V>& rates,
    const adbench::Vector<M>& masses, const adbench::Vector<L>& lengths, const adbench::Matrix<O>& outward,
    const adbench::Vector<G>& target, const D& duration, std::int64_t steps) {
    using B = adbench::Of<T, M, L, O>;
    using std::cos, std::sin;
    const std::size_t n = masses.size();
    std::vector<B> between(n * n, B(0.0)), weight(n, B(0.0));
    arm::inertia<B>(masses, lengths, outward, between, weight);
    std::vector<T> matrix(n * n, T(0.0));
    const auto slope = [&](const std::vector<T>& s, std::vector<T>& k) {
        for (std::size_t i = 0; i < n; ++i) {
            k[i] = s[n + i];
            T force = torques[i] - weight[i] * cos(s[i]);
            if (i + 1 < n) force -= torques[i + 1];
            for (std::size_t j = 0; j < n; ++j) {
                const T gap = s[i] - s[j];
                matrix[i * n + j] = between[i * n + j] * cos(gap);
                force -= between[i * n + j] * sin(gap) * s[n + j] * s[n + j];
            }
            k[n + i] = force;
        }
        eliminated(matrix, n, false);  // symmetric and positive definite
        arm::solve(matrix, n, &k[n]);
    };
    const adbench::Of<T, D> h = duration / static_cast<double>(steps);
    std::vector<T> s(2 * n, T(0.0)), at(s), k1(s), k2(s), k3(s), k4(s);
    const auto moved = [&](double part, const std::vector<T>& k) -> const std::vector<T>& {
        for (std::size_t i = 0; i < 2 * n; ++i) at[i] = s[i] + part * h * k[i];
        return at;
    };
    for (std::size_t i = 0; i < n; ++i) {
        s[i] = angles[i];
        s[n + i] = rates[i];
    }
    for (std::int64_t step = 0; step < steps; ++step) {
        slope(s, k1);
        slope(moved(0.5, k1), k2);
        slope(moved(0.5, k2), k3);
        slope(moved(1.0, k3), k4);
        for (std::size_t i = 0; i < 2 * n; ++i) s[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
    }
    T x = -target[0], y = -target[1], moving = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        x += lengths[i] * cos(s[i]);
        y += lengths[i] * sin(s[i]);
        moving += lengths[i] * lengths[i] * s[n + i] * s[n + i];
    }
    return 0.5 * (x * x + y * y) + arm::slowness * moving;
}

// The adjoint of the same steps. With M α = F and λ = M⁻¹ w, w · dα = λ · (dF - dM α).
inline double gradient(const adbench::Vector<double>& torques, const adbench::Vector<double>& angles,
                       const adbench::Vector<double>& rates, const adbench::Vector<double>& masses,
                       const adbench::Vector<double>& lengths, const adbench::Matrix<double>& outward,
                       const adbench::Vector<double>& target, double duration, std::int64_t steps,
                       adbench::Result<1> by_torques, adbench::Result<1> by_angles, adbench::Nothing,
                       adbench::Result<1> by_masses, adbench::Nothing, adbench::Nothing, adbench::Nothing,
                       adbench::Nothing, adbench::Nothing) {
    struct Stage {
        std::vector<double> at, alpha, factors, sines, cosines;  // sines and cosines times B
    };
    const std::size_t n = masses.size(), count = static_cast<std::size_t>(steps);
    const double h = duration / static_cast<double>(steps);
    std::vector<double> between(n * n), weight(n), s(2 * n), k(2 * n), total(2 * n);
    arm::inertia<double>(masses, lengths, outward, between, weight);
    const auto slope = [&](Stage& stage) {
        stage.factors.resize(n * n), stage.sines.resize(n * n), stage.cosines.resize(n * n);
        for (std::size_t i = 0; i < n; ++i) {
            k[i] = stage.at[n + i];
            double force = torques[i] - (i + 1 < n ? torques[i + 1] : 0.0) - weight[i] * std::cos(stage.at[i]);
            for (std::size_t j = 0; j < n; ++j) {
                const double gap = stage.at[i] - stage.at[j], rate = stage.at[n + j];
                stage.sines[i * n + j] = between[i * n + j] * std::sin(gap);
                stage.cosines[i * n + j] = between[i * n + j] * std::cos(gap);
                force -= stage.sines[i * n + j] * rate * rate;
            }
            k[n + i] = force;
        }
        stage.factors = stage.cosines;
        eliminated(stage.factors, n, false);
        arm::solve(stage.factors, n, &k[n]);
        stage.alpha.assign(k.begin() + static_cast<std::ptrdiff_t>(n), k.end());
    };
    std::copy(angles.begin(), angles.end(), s.begin());
    std::copy(rates.begin(), rates.end(), s.begin() + static_cast<std::ptrdiff_t>(n));
    constexpr double parts[] = {0.0, 0.5, 0.5, 1.0}, shares[] = {1.0, 2.0, 2.0, 1.0};
    std::vector<Stage> stages(4 * count);
    for (std::size_t step = 0; step < count; ++step) {
        std::fill(total.begin(), total.end(), 0.0);
        for (std::size_t part = 0; part < 4; ++part) {
            Stage& stage = stages[4 * step + part];
            stage.at = s;
            for (std::size_t i = 0; part > 0 && i < 2 * n; ++i) stage.at[i] += parts[part] * h * k[i];
            slope(stage);
            for (std::size_t i = 0; i < 2 * n; ++i) total[i] += shares[part] * k[i];
        }
        for (std::size_t i = 0; i < 2 * n; ++i) s[i] += h / 6.0 * total[i];
    }
    double x = -target[0], y = -target[1], moving = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        x += lengths[i] * std::cos(s[i]);
        y += lengths[i] * std::sin(s[i]);
        moving += lengths[i] * lengths[i] * s[n + i] * s[n + i];
    }
    std::vector<double> w(2 * n), by_at(2 * n), by_k(2 * n), by_between(n * n), by_weight(n), lambda(n);
    for (std::size_t i = 0; i < n; ++i) {
        w[i] = lengths[i] * (y * std::cos(s[i]) - x * std::sin(s[i]));
        w[n + i] = 2.0 * arm::slowness * lengths[i] * lengths[i] * s[n + i];
    }
    std::fill(by_torques.begin(), by_torques.end(), 0.0);
    const auto back = [&](const Stage& stage) {  // by_at and the rest from by_k
        std::copy(by_k.begin() + static_cast<std::ptrdiff_t>(n), by_k.end(), lambda.begin());
        arm::solve(stage.factors, n, lambda.data());
        std::fill(by_at.begin(), by_at.end(), 0.0);
        for (std::size_t i = 0; i < n; ++i) {
            by_torques[i] += lambda[i];
            if (i + 1 < n) by_torques[i + 1] -= lambda[i];
            by_weight[i] -= lambda[i] * std::cos(stage.at[i]);
            by_at[i] += lambda[i] * weight[i] * std::sin(stage.at[i]);
            by_at[n + i] += by_k[i];
            for (std::size_t j = 0; j < n; ++j) {
                const double sine = stage.sines[i * n + j], cosine = stage.cosines[i * n + j];
                const double rate = stage.at[n + j], alpha = stage.alpha[j];
                const double turn = lambda[i] * (sine * alpha - cosine * rate * rate);
                by_at[i] += turn;
                by_at[j] -= turn;
                by_at[n + j] -= 2.0 * lambda[i] * sine * rate;
                by_between[i * n + j] -= lambda[i] * (sine * rate * rate + cosine * alpha);
            }
        }
    };
    for (std::size_t step = count; step-- > 0;) {
        total = w;
        std::fill(by_at.begin(), by_at.end(), 0.0);
        for (std::size_t part = 4; part-- > 0;) {
            const double from_next = part < 3 ? parts[part + 1] * h : 0.0;
            for (std::size_t i = 0; i < 2 * n; ++i) by_k[i] = h / 6.0 * shares[part] * w[i] + from_next * by_at[i];
            back(stages[4 * step + part]);
            for (std::size_t i = 0; i < 2 * n; ++i) total[i] += by_at[i];
        }
        w = total;
    }
    std::copy(w.begin(), w.begin() + static_cast<std::ptrdiff_t>(n), by_angles.begin());
    for (std::size_t i = 0; i < n * n; ++i) by_between[i] /= between[i];  // it holds B times the sines and cosines
    for (std::size_t k = 0; k < n; ++k) {
        by_masses[k] = by_between[k * n + k] * lengths[k] * lengths[k] / 12.0;
        for (std::size_t i = 0; i < n; ++i) {
            const double reach = outward(k, i) * lengths[i];
            by_masses[k] += arm::gravity * by_weight[i] * reach;
            for (std::size_t j = 0; j < n; ++j) by_masses[k] += by_between[i * n + j] * reach * outward(k, j) * lengths[j];
        }
    }
    return 0.5 * (x * x + y * y) + arm::slowness * moving;
}
