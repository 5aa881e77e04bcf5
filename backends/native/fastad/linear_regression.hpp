// X arrives transposed, and FastAD's transpose of a constant does not compile: transpose here, when the data change.
template <class T, class A, class Y, class W, class B, class S>
auto f(const A& X, const Y& y, const W& w, const B& b, const S& sigma) {
    const double constants = 0.5 * static_cast<double>(y.rows() + w.rows()) * std::log(2.0 * adbench::pi);
    const auto mean = ad::dot(ad::constant(Eigen::MatrixXd(X.get().transpose())), w) + b;
    return ad::normal_adj_log_pdf(y, mean, sigma) + ad::normal_adj_log_pdf(w, 0.0, 1.0) - 0.5 * b * b -
           ad::log(1.0 + sigma * sigma) - constants;
}
