#include <array>

#include "adbench.hpp"

namespace cart_pole {

constexpr double cart = 1.0, bob = 0.3, length = 0.5, gravity = 9.8, effort = 0.05, last = 5.0;

template <class T>
T cost(const T& x, const T& angle, const T& v, const T& rate) {
    using std::cos;
    return 0.5 * x * x + 1.0 + cos(angle) + 0.05 * (v * v + rate * rate);
}

}  // namespace cart_pole

template <class T, class U, class S, class D>
T f(const adbench::Vector<U>& controls, const adbench::Vector<S>& start, const D& duration) {
    using namespace cart_pole;
    using std::cos, std::sin;
    const D h = duration / static_cast<double>(controls.size());
    T x = start[0], angle = start[1], v = start[2], rate = start[3], total = 0.0;
    for (const U& u : controls) {
        const T sine = sin(angle), cosine = cos(angle);
        const T push = u + bob * sine * (length * rate * rate + gravity * cosine);
        const T a = push / (cart + bob * sine * sine);
        v += h * a;
        rate -= h * (a * cosine + gravity * sine) / length;
        x += h * v;
        angle += h * rate;
        total += h * (cost<T>(x, angle, v, rate) + effort * u * u);
    }
    return total + last * cost<T>(x, angle, v, rate);
}

inline double gradient(const adbench::Vector<double>& controls, const adbench::Vector<double>& start, double duration,
                       adbench::Result<1> by_controls, adbench::Nothing, adbench::Nothing) {
    using namespace cart_pole;
    struct Step {
        double sine, cosine, a, rate;  // before the step
        double x, sine_after, v, rate_after;
    };
    const std::size_t n = controls.size();
    const double h = duration / static_cast<double>(n);
    std::vector<Step> steps(n);
    double x = start[0], angle = start[1], v = start[2], rate = start[3], total = 0.0;
    double sine = std::sin(angle), cosine = std::cos(angle);
    for (std::size_t k = 0; k < n; ++k) {
        const double u = controls[k], push = u + bob * sine * (length * rate * rate + gravity * cosine);
        const double a = push / (cart + bob * sine * sine);
        steps[k] = {sine, cosine, a, rate, 0.0, 0.0, 0.0, 0.0};
        v += h * a;
        rate -= h * (a * cosine + gravity * sine) / length;
        x += h * v;
        angle += h * rate;
        sine = std::sin(angle);
        cosine = std::cos(angle);
        steps[k].x = x;
        steps[k].sine_after = sine;
        steps[k].v = v;
        steps[k].rate_after = rate;
        total += h * (0.5 * x * x + 1.0 + cosine + 0.05 * (v * v + rate * rate) + effort * u * u);
    }
    total += last * (0.5 * x * x + 1.0 + cosine + 0.05 * (v * v + rate * rate));
    double by_x = 0.0, by_angle = 0.0, by_v = 0.0, by_rate = 0.0, weight = h + last;
    for (std::size_t k = n; k-- > 0; weight = h) {
        const Step& s = steps[k];
        by_x += weight * s.x;
        by_angle -= weight * s.sine_after;
        by_v += weight * 0.1 * s.v + h * by_x;
        by_rate += weight * 0.1 * s.rate_after + h * by_angle;
        const double by_a = h * (by_v - by_rate * s.cosine / length), mass = cart + bob * s.sine * s.sine;
        by_controls[k] = by_a / mass + 2.0 * h * effort * controls[k];
        const double pull = length * s.rate * s.rate * s.cosine + gravity * (s.cosine * s.cosine - s.sine * s.sine) -
                            2.0 * s.a * s.sine * s.cosine;
        by_angle += by_a * bob * pull / mass + by_rate * h * (s.a * s.sine - gravity * s.cosine) / length;
        by_rate += by_a * 2.0 * bob * s.sine * length * s.rate / mass;
    }
    return total;
}
