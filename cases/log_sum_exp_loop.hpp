#include "_log_sum_exp.hpp"

template <class T, class X>
T f(const adbench::Vector<X>& x) {
    using std::exp, std::log;
    T total = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) {
        if (total < x[i]) {
            total = x[i] + log(1.0 + exp(total - x[i]));
        } else {
            total = total + log(1.0 + exp(x[i] - total));
        }
    }
    return total;
}
