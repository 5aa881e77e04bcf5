// Eight doubles at a time, for gradients vectorised by hand (backend `cpp_simd`).
//
// Loops over arrays that call exp, log, log1p, … need nothing of this: with `cpp_simd`'s flags the compiler vectorises
// them with glibc's libmvec.
#pragma once

#include <cstddef>
#include <cstring>

namespace simd {

using V = double __attribute__((vector_size(64)));
constexpr std::size_t width = 8;

inline V all(double x) { return V{x, x, x, x, x, x, x, x}; }
inline V load(const double* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline void store(double* p, V v) { std::memcpy(p, &v, sizeof v); }
inline double total(V v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

}  // namespace simd
