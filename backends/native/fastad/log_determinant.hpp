#include <fastad_bits/reverse/core/log_det.hpp>  // <fastad> leaves it out

// Of the transposed matrix, as it comes: its determinant is the same.
template <class T, class X>
auto f(const X& A) {
    return ad::log_det(A);
}
