template <class T, class Y, class M, class S>
auto f(const Y& y, const M& mu, const S& sigma) {
    return ad::normal_adj_log_pdf(y, mu, sigma) - 0.5 * static_cast<double>(y.rows()) * std::log(2.0 * adbench::pi);
}
