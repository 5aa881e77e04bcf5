template <class T, class X>
auto f(const X& M) {
    return ad::norm(M);
}
