template <class T, class X>
auto f(const X& x) {
    return ad::prod(x);
}
