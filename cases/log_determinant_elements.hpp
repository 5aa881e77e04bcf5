#include "_elimination.hpp"

template <class T, class X>
T f(const adbench::Matrix<X>& A) {
    return log_abs_det<T>(A, false);
}
