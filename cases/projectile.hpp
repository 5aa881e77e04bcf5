#include "adbench.hpp"

template <class T, class A, class S, class D>
T f(const A& angle, const S& speed, const D& dt) {
    using std::cos, std::sin;
    const T vx = speed * cos(angle);
    T vy = speed * sin(angle), x = 0.0, y = 0.0, last_x = 0.0, last_y = 0.0;
    while (y >= 0.0) {
        last_x = x;
        last_y = y;
        x = x + vx * dt;
        y = y + vy * dt;
        vy = vy - 9.8 * dt;
    }
    return (x * last_y - last_x * y) / (last_y - y);
}

inline double gradient(double angle, double speed, double dt, double& by_angle, double& by_speed, adbench::Nothing) {
    const double vx = speed * std::cos(angle), vy = speed * std::sin(angle);
    const double before = std::floor(2.0 * vy / (9.8 * dt)) + 1.0;  // steps above the ground
    const double t = before * dt, y = before * dt * (vy - 9.8 * dt * (before - 1.0) / 2.0), v = vy - 9.8 * t;
    const double by_vx = t - y / v, by_vy = -vx * (t / v - y / (v * v));
    by_angle = -vy * by_vx + vx * by_vy;
    by_speed = (vx * by_vx + vy * by_vy) / speed;
    return vx * (t - y / v);
}
