// Adaptive integration with the Dormand-Prince pair of orders five and four; steps are halved or doubled.
//
// Dormand & Prince (1980), "A family of embedded Runge-Kutta formulae", Journal of Computational and Applied
// Mathematics 6, 19-26: RK5(4)7M, table 2.
#pragma once

#include <array>

#include "adbench.hpp"

// The state at `end` of s' = slope(s) from `state` at `start`, with steps of h times powers of two.
//
// A step with Σ error² > tolerance² over the first two entries is repeated with half the size; if the error is 64 times
// smaller, the next step has twice the size; steps of 2⁻²⁰ are always accepted. The last step ends at `end`.
//
// moved(s, size, by, last) is s + size by; every size except the last is a double.
template <class T, std::size_t entries, class Slope, class Moved, class Start, class End>
std::array<T, entries> integrated(const Slope& slope, const Moved& moved, std::array<T, entries> state,
                                  const Start& start, const End& end, double h, double tolerance) {
    using State = std::array<T, entries>;
    using Time = adbench::Of<T, Start, End>;
    constexpr double longer = 64.0, shortest = 0x1p-20;
    adbench::Of<T, Start> time = start;
    State first = slope(state);

    // Takes a step of this size if the error allows it, and doubles h if possible; returns whether it did.
    const auto taken = [&](const auto& size, bool last) {
        const auto mixed = [](const auto& entry) {
            State by;
            for (std::size_t i = 0; i < entries; ++i) by[i] = entry(i);
            return by;
        };
        const auto next = [&](const auto& entry) { return slope(moved(state, size, mixed(entry), last)); };
        const State& k1 = first;
        const State k2 = next([&](std::size_t i) -> T { return 1.0 / 5.0 * k1[i]; });
        const State k3 = next([&](std::size_t i) -> T { return 3.0 / 40.0 * k1[i] + 9.0 / 40.0 * k2[i]; });
        const State k4 =
            next([&](std::size_t i) -> T { return 44.0 / 45.0 * k1[i] - 56.0 / 15.0 * k2[i] + 32.0 / 9.0 * k3[i]; });
        const State k5 = next([&](std::size_t i) -> T {
            return 19372.0 / 6561.0 * k1[i] - 25360.0 / 2187.0 * k2[i] + 64448.0 / 6561.0 * k3[i] -
                   212.0 / 729.0 * k4[i];
        });
        const State k6 = next([&](std::size_t i) -> T {
            return 9017.0 / 3168.0 * k1[i] - 355.0 / 33.0 * k2[i] + 46732.0 / 5247.0 * k3[i] + 49.0 / 176.0 * k4[i] -
                   5103.0 / 18656.0 * k5[i];
        });
        State there = moved(state, size, mixed([&](std::size_t i) -> T {
            return 35.0 / 384.0 * k1[i] + 500.0 / 1113.0 * k3[i] + 125.0 / 192.0 * k4[i] - 2187.0 / 6784.0 * k5[i] +
                   11.0 / 84.0 * k6[i];
        }), last);
        State k7 = slope(there);
        T square = 0.0;
        for (std::size_t i = 0; i < 2; ++i) {
            const T error = size * (71.0 / 57600.0 * k1[i] - 71.0 / 16695.0 * k3[i] + 71.0 / 1920.0 * k4[i] -
                                    17253.0 / 339200.0 * k5[i] + 22.0 / 525.0 * k6[i] - 1.0 / 40.0 * k7[i]);
            square = square + error * error;
        }
        if (square > tolerance * tolerance && h > shortest) {
            h /= 2.0;
            return false;
        }
        time = time + h;
        state = there;
        first = k7;
        if (!(square >= tolerance / longer * (tolerance / longer))) h *= 2.0;  // with NaN, steps grow to the end
        return true;
    };

    while (true) {
        if (time + h < end) {
            taken(h, false);
        } else if (const Time left = end - time; taken(left, true)) {  // NaN ends it too
            return state;
        }
    }
}
