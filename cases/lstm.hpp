#include "adbench.hpp"

template <class T, class M, class E, class H, class C, class X>
T f(const adbench::Array<M, 4>& main, const adbench::Matrix<E>& extra, const adbench::Matrix<H>& hidden,
    const adbench::Matrix<C>& memory, const adbench::Matrix<X>& frames) {
    using std::exp, std::log, std::tanh;
    const auto sigmoid = [](const T& x) -> T { return 1.0 / (1.0 + exp(-x)); };
    const std::size_t layers = hidden.rows(), width = hidden.cols(), steps = frames.rows() - 1;
    std::vector<T> h(hidden.begin(), hidden.end()), c(memory.begin(), memory.end()), x(width), y(width);
    T total = 0.0;
    for (std::size_t t = 0; t < steps; ++t) {
        for (std::size_t j = 0; j < width; ++j) x[j] = frames(t, j) * extra(0, j);
        for (std::size_t k = 0; k < layers; ++k) {
            const auto weights = main[k][0], offsets = main[k][1];
            for (std::size_t j = 0; j < width; ++j) {
                T &here = h[k * width + j], &cell = c[k * width + j];
                const T forget = sigmoid(x[j] * weights(0, j) + offsets(0, j));
                const T ingate = sigmoid(here * weights(1, j) + offsets(1, j));
                const T outgate = sigmoid(x[j] * weights(2, j) + offsets(2, j));
                const T change = tanh(here * weights(3, j) + offsets(3, j));
                cell = cell * forget + ingate * change;
                here = outgate * tanh(cell);
                x[j] = here;
            }
        }
        T sum = 2.0;
        for (std::size_t j = 0; j < width; ++j) {
            y[j] = x[j] * extra(1, j) + extra(2, j);
            sum += exp(y[j]);
        }
        const T norm = log(sum);
        for (std::size_t j = 0; j < width; ++j) total += frames(t + 1, j) * (y[j] - norm);
    }
    return -total / static_cast<double>(steps * width);
}
