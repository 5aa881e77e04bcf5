// The matrices arrive transposed: Σ (Bᵀ Aᵀ) = Σ (A B).
template <class T, class X, class Y>
auto f(const X& A, const Y& B) {
    return ad::sum(ad::dot(B, A));
}
