template <class T, class X, class Y>
auto f(const X& x1, const Y& x2) {
    return 2.0 * x1 * x2 + 7.0;
}
